// Types of the advertiser side: an application, its attachments and screens, and the list page it came on. They hold the source's facts
// after parsing.

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
  readonly notes: readonly Note[];
  /** The whole source object as JSON text that a jsonb column accepts. */
  readonly raw: string;
  /** The source object exactly as sent, where `raw` had to differ from it; otherwise null. */
  readonly rawText: string | null;
  /** Hex sha256 over the facts above and all members that Intake does not know, in a form that is the same for JSON and XML. */
  readonly contentHash: string;
  /** A hash of the facts without Hash and Href of each attachment; where there are `members`, followed by a hash of these two. */
  readonly factsHash: string;
  /** Members that the spec does not name, each with a hash of its value. */
  readonly members: MemberHashes;
}

/** Hashes of members by name. At most some hundred, with names of bounded length: `others` holds the rest. */
export type MemberHashes = Readonly<Record<string, string>>;

export interface JobSeekingInfo {
  readonly jobTitle: string | null;
  readonly companyName: string | null;
  readonly timeInRoleMonths: number | null;
  readonly isNewToWorkforce: boolean | null;
}

/** The kinds of attachment that can be fetched; each has its own path at the source. */
export const attachmentKinds = ['resume', 'coverLetter', 'selectionCriteria', 'screen'] as const;
export type AttachmentKind = (typeof attachmentKinds)[number];

/** Null where the source says nothing, as before its scan; `unreadable` where it says something that Intake does not understand. */
export type VirusFlag = boolean | null | 'unreadable';

export const unreadableFlag = 'its virus flag (HasVirus) cannot be read';

export interface Attachment {
  /** An AttachmentKind, or the source's own text for a type that Intake does not know, or `unknown`. */
  readonly kind: string;
  readonly sourceHash: string | null;
  readonly sizeBytes: number | null;
  readonly hasVirus: VirusFlag;
  readonly uploadedAt: number | null;
  /** As the source wrote it, in the form `+11:00`. */
  readonly uploadedOffset: string | null;
  /** As sent. Intake never requests this address: it builds paths from kind and application id. */
  readonly href: string | null;
}

/** A field of an application that could not be stored as sent. Names the field, never its content. */
export interface Note {
  readonly field: string;
  readonly reason: string;
}

/** A list element that is not an application: it has no usable id, or is not an object. */
export interface Reject extends Pick<Application, 'raw' | 'rawText'> {
  readonly reason: string;
  /** A hash that keeps an erased element out: it stays the same even where other parts of the element change. */
  readonly identity: string;
  /** A hash of who applied for what, the same in every answer; null where the element does not say it. */
  readonly applicant: string | null;
  /** Its content, from which the store leaves out what differs in every answer: the members of the spec; without an applicant, all. */
  readonly members: MemberHashes;
  /** The application that it would be, where its id is another person's. */
  readonly application?: Application;
}

/** Reasons of elements whose id is stored for another person, or is a fraction, a text, or a number that was rounded. */
export const sharedId = 'ID names another person as well';
export const inexactId = 'ID is not an exact integer';

/** The most elements of an advertiser that wait in quarantine. Further ones are not kept, and the status says so. */
export const mostQuarantined = 10_000;

export interface Page {
  readonly advertiserId: bigint | null;
  readonly agentId: string | null;
  /** One per id, in the order of first appearance. */
  readonly applications: readonly Application[];
  /** Every usable id in the order of the answer, repeated where the answer repeats it. */
  readonly ids: readonly bigint[];
  readonly rejects: readonly Reject[];
  /** All copies of the ids that name several people. One of each is among the applications. */
  readonly shared: readonly Application[];
  /** The filters as the answer repeats them: null for none, undefined where they are absent or cannot be read. */
  readonly echo: {
    readonly afterId: bigint | null | undefined;
    readonly beforeId: bigint | null | undefined;
    /** Milliseconds since the epoch; text without a zone is read as +10:00. */
    readonly afterDate: number | null | undefined;
    readonly beforeDate: number | null | undefined;
  };
  /** The answer is empty without a list: 204, 404, no body, or an envelope with a message and no list. Too weak for a proof. */
  readonly weakEmpty: boolean;
  readonly bytes: number;
  readonly cached: boolean;
  /** When this version of the API ends, as the source announces it; null without an announcement. */
  readonly sunsetAt: number | null;
}

export function isAttachmentKind(kind: string): kind is AttachmentKind {
  return (attachmentKinds as readonly string[]).includes(kind);
}

export type AttachmentState = 'pending' | 'stored' | 'infected' | 'missing' | 'rejected' | 'given_up' | 'erased';

/** The initial state of a new attachment. Spec: Attachment.HasVirus true means that there is nothing to fetch. */
export function toFirstState({ kind, hasVirus }: Attachment): { state: AttachmentState; reason: string | null } {
  if (hasVirus === true) return { state: 'infected', reason: null };
  if (!isAttachmentKind(kind)) return { state: 'rejected', reason: 'a type without a known path' };
  return hasVirus === 'unreadable' ? { state: 'rejected', reason: unreadableFlag } : { state: 'pending', reason: null };
}

// A screening questionnaire as one person answered it: screen, question, answer, in the source's order.

export interface Screen {
  readonly id: string | null;
  readonly name: string | null;
  readonly outcome: 'pass' | 'fail' | 'unknown';
  readonly questions: readonly ScreenQuestion[];
  readonly notes: readonly Note[];
}

/** A question. Its type is the source's own word, known to Intake or not. Ids may be absent or repeated. */
export interface ScreenQuestion {
  readonly id: string | null;
  readonly type: string | null;
  readonly text: string | null;
  readonly answers: readonly ScreenAnswer[];
}

/** An answer that was offered, or the text that was entered. */
export interface ScreenAnswer {
  readonly id: string | null;
  /** Empty where there is none: XML cannot tell an empty text from an absent one, so Intake does not either. */
  readonly text: string;
  /** Only where the source says so, also for a Text question: a text without the mark is stored, but not as selected. */
  readonly selected: boolean;
}

export interface ParsedScreens {
  readonly screens: readonly Screen[];
  /** The version of the parser. Rows of an older version can be rebuilt from the stored bytes. */
  readonly parserVersion: number;
}

/** A larger file is stored like any other, but not parsed. */
export const largestScreenBytes = 8 * 1024 * 1024;

/** Spec: screen.successful, True is pass and False is fail. Without it the outcome is unknown, never fail. */
export function toOutcome(successful: boolean | null): Screen['outcome'] {
  if (successful === null) return 'unknown';
  return successful ? 'pass' : 'fail';
}

export function toUnreadableNote(why: string): Note {
  return { field: 'screen', reason: `cannot be read: ${why}` };
}
