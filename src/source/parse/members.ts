// The members of the list as the spec names them, and how they are found in an object.
// Names match in any case, the spec's own spelling first. Unknown members are kept separately, never dropped.

/** An object's members: known ones by the spec's name, unknown ones as received. */
export interface Members {
  readonly known: Readonly<Record<string, unknown>>;
  readonly unknown: readonly (readonly [name: string, value: unknown])[];
}

export type Names = ReadonlyMap<string, string>;

type Scalar = 'text' | 'integer' | 'boolean' | 'date';
/** The type of a member in JSON. In XML every value is text: xml.ts gives it this type. */
export type MemberType = Scalar | { readonly object: ObjectShape } | { readonly listOf: ObjectShape };

export interface ObjectShape {
  readonly names: Names;
  readonly types: Readonly<Record<string, MemberType>>;
}

export const attachmentShape = shapeOf({
  DateUploaded: 'date',
  HasVirus: 'boolean',
  Hash: 'text',
  Href: 'text',
  Size: 'integer',
  Type: 'text',
});
export const jobSeekingInfoShape = shapeOf({
  JobTitle: 'text',
  CompanyName: 'text',
  TimeInRole: 'integer',
  IsNewToWorkForce: 'boolean',
});
export const applicationShape = shapeOf({
  ID: 'integer',
  DateSubmitted: 'date',
  Email: 'text',
  FirstName: 'text',
  LastName: 'text',
  Phone: 'text',
  JobSeekerID: 'text',
  JobReference: 'text',
  Attachments: { listOf: attachmentShape },
  PrimaryJobSeekingInfo: { object: jobSeekingInfoShape },
});
export const envelopeShape = shapeOf({
  AdvertiserID: 'integer',
  AgentID: 'text',
  AfterID: 'text',
  BeforeID: 'text',
  AfterDate: 'date',
  BeforeDate: 'date',
  JobApplicationsList: { listOf: applicationShape },
});

/** True for the names of an application's members: its id and another one. */
export function namesApplication(names: readonly string[]): boolean {
  const known = names.map((name) => applicationShape.names.get(name.replace('@', '').toLowerCase()) ?? '');
  return known.includes('ID') && known.some((name) => name !== '' && name !== 'ID');
}

/** A member may be an attribute of XML. Not an ID: erasures know an element that has it there as one without an id. */
function shapeOf(types: ObjectShape['types']): ObjectShape {
  const spelled = Object.keys(types);
  const attributes = spelled.flatMap((name) => (name === 'ID' ? [] : [[`@${name.toLowerCase()}`, name] as const]));
  return { names: new Map([...namesOf(spelled), ...attributes]), types };
}

/** Splits an object's members into known and unknown; `__type`, which some serializers add, is ignored. */
export function readMembers(object: Readonly<Record<string, unknown>>, names: Names): Members {
  // Only the spec's names become keys of `known`, so a member called __proto__ or constructor does no harm.
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

/** Maps names, as spelled and in lower case, to the spec's spelling. */
export function namesOf(spelled: readonly string[]): Names {
  return new Map(spelled.flatMap((name) => [[name.toLowerCase(), name] as const, [name, name] as const]));
}
