// What is said on the wire, before it is JSON or XML: members, lists, moments and scalars. Words only; the renderers
// next door write them, the files that know applications and screens make them.

export type Wire = null | boolean | number | bigint | string | Moment | WireMembers | List | Verbatim;

interface Moment {
  readonly moment: number;
}

interface WireMembers {
  readonly members: readonly Member[];
}

export type Member = readonly [name: string, value: Wire];

interface List {
  readonly list: Iterable<Wire>;
  /** The element's name in XML. */
  readonly of: string;
}

/** Text that stands in the body as it is. */
export interface Verbatim {
  readonly json: string;
  readonly xml: string;
}
