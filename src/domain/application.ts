// The words of the advertiser side: an application, what is attached to it, and the page it came on.
// These are the source's facts after parsing; how the source writes them is known only to source/, how they are kept only to store/.

/** One person's application to one job ad. Only the id is certain: every other fact may be absent at the source. */
export interface Application {
  readonly id: bigint;
  /** Milliseconds since the epoch. */
  readonly submittedAt: number | null;
  /** The offset that the source wrote beside the instant, as `+11:00`; for display, never for arithmetic. */
  readonly sourceOffset: string | null;
  readonly email: string | null;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly phone: string | null;
  readonly jobSeekerId: string | null;
  readonly jobReference: string | null;
  readonly jobSeekingInfo: JobSeekingInfo | null;
  /** At most one per kind. */
  readonly attachments: readonly Attachment[];
  /** What could not be kept as it came, and why. */
  readonly notes: readonly Note[];
  /** The whole source object as JSON text that a jsonb column accepts. */
  readonly raw: string;
  /** The source object as it was written, where `raw` had to differ from it; otherwise null. */
  readonly rawText: string | null;
  /** Hex sha256 over the facts above and all members we do not know, in a form that is the same for JSON and XML. */
  readonly contentHash: string;
  /** Hex, the same without Hash and Href of each attachment: where it is equal, nothing but these differs. */
  readonly factsHash: string;
}

/** What the jobseeker said of their work when applying. */
export interface JobSeekingInfo {
  readonly jobTitle: string | null;
  readonly companyName: string | null;
  readonly timeInRoleMonths: number | null;
  readonly isNewToWorkforce: boolean | null;
}

/** The kinds of attachment that can be fetched; each has its own path at the source. */
export const attachmentKinds = ['resume', 'coverLetter', 'selectionCriteria', 'screen'] as const;
export type AttachmentKind = (typeof attachmentKinds)[number];

/** What the source says exists beside an application. */
export interface Attachment {
  /** An AttachmentKind, or the source's own text for a type we do not know, or `unknown`. */
  readonly kind: string;
  readonly sourceHash: string | null;
  readonly sizeBytes: number | null;
  readonly hasVirus: boolean | null;
  readonly uploadedAt: number | null;
  /** As sent. Never followed: paths are built from kind and application id. */
  readonly href: string | null;
}

/** Something of an application that could not be kept as it came. Names the field, never its content. */
export interface Note {
  readonly field: string;
  readonly reason: string;
}

/** An element of the list that is no application: it has no usable id, or is no object at all. */
export interface Reject {
  readonly reason: string;
  /** What is stable in it: the same for the same element in every answer, whatever else of it differs. */
  readonly identity: string;
  /** The element as JSON text that a jsonb column accepts. */
  readonly raw: string;
  readonly rawText: string | null;
}

/** What the source repeats of a filter: not at all, null, a value, or something that cannot be read. */
export type Echo<T> = 'absent' | 'unreadable' | null | T;

/** One whole, valid answer of the list. */
export interface Page {
  /** Null where the answer names none. */
  readonly advertiserId: bigint | null;
  readonly agentId: string | null;
  /** One per id, in the order of first appearance. */
  readonly applications: readonly Application[];
  /** Every usable id in the order it came, repeated where it came more than once. */
  readonly ids: readonly bigint[];
  readonly rejects: readonly Reject[];
  readonly echo: {
    readonly afterId: Echo<bigint>;
    readonly beforeId: Echo<bigint>;
    /** Milliseconds since the epoch; text without a zone is read as +10:00. */
    readonly afterDate: Echo<number>;
    readonly beforeDate: Echo<number>;
  };
  /** Empty without an envelope to say so: 204, 404 or no body. A proof needs more. */
  readonly weakEmpty: boolean;
  /** Size of the body, inflated. */
  readonly bytes: number;
  /** SHA-256 of the body; null where there is none. */
  readonly bodyHash: Uint8Array | null;
  /** The answer says that it comes from a cache. */
  readonly cached: boolean;
  /** When the source says that this version of its API ends; null where it says nothing. */
  readonly sunsetAt: number | null;
}

/** True for the kinds that have a path to fetch them by. */
export function isAttachmentKind(kind: string): kind is AttachmentKind {
  return (attachmentKinds as readonly string[]).includes(kind);
}

export type AttachmentState = 'pending' | 'stored' | 'infected' | 'missing' | 'rejected' | 'given_up' | 'erased';

/** The state in which a newly met attachment begins. Spec: Attachment.HasVirus true means that there is nothing to fetch. */
export function toFirstState(attachment: Attachment): { state: AttachmentState; reason: string | null } {
  if (attachment.hasVirus === true) return { state: 'infected', reason: null };
  if (!isAttachmentKind(attachment.kind)) return { state: 'rejected', reason: 'a type without a known path' };
  return { state: 'pending', reason: null };
}
