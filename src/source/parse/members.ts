// The member names of the list as the spec writes them, and how an object's members are found under them.
// Any key case is accepted, the spec's own first; what we do not know is kept apart, never dropped.

/** An object's members: those we know by the spec's name, the others as they came. */
export interface Members {
  readonly known: Readonly<Record<string, unknown>>;
  readonly unknown: readonly (readonly [name: string, value: unknown])[];
}

type Names = ReadonlyMap<string, string>;

/** Members of the list's envelope. Spec: Job applications result. */
export const envelopeNames: Names = namesOf([
  'AdvertiserID',
  'AgentID',
  'AfterID',
  'BeforeID',
  'AfterDate',
  'BeforeDate',
  'JobApplicationsList',
]);
/** Members of one application. Spec: Job application. */
export const applicationNames: Names = namesOf([
  'ID',
  'DateSubmitted',
  'Email',
  'FirstName',
  'LastName',
  'Phone',
  'JobSeekerID',
  'JobReference',
  'Attachments',
  'PrimaryJobSeekingInfo',
]);
/** Members of one attachment. Spec: Attachment. */
export const attachmentNames: Names = namesOf(['DateUploaded', 'HasVirus', 'Hash', 'Href', 'Size', 'Type']);
/** Members of the job-seeking info. Spec: PrimaryJobSeekingInfo. */
export const jobSeekingInfoNames: Names = namesOf(['JobTitle', 'CompanyName', 'TimeInRole', 'IsNewToWorkForce']);

/** Sorts an object's members into known and unknown; `__type`, a serializer's own mark, is neither. */
export function readMembers(object: Readonly<Record<string, unknown>>, names: Names): Members {
  // Only the spec's names become keys here, so a member called __proto__ or constructor touches nothing.
  const known: Record<string, unknown> = {};
  const unknown: [string, unknown][] = [];
  for (const key of Object.keys(object)) {
    const exact = names.get(key);
    if (exact === key) known[key] = object[key];
    else {
      const name = exact ?? names.get(key.toLowerCase());
      if (name !== undefined && !Object.hasOwn(object, name) && !Object.hasOwn(known, name)) known[name] = object[key];
      else if (key !== '__type') unknown.push([key, object[key]]);
    }
  }
  return { known, unknown };
}

/** Names as the spec spells them, to be found in any case. */
export function namesOf(spelled: readonly string[]): Names {
  return new Map(spelled.flatMap((name) => [[name.toLowerCase(), name] as const, [name, name] as const]));
}
