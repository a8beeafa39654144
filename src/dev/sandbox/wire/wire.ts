// The values of an answer before they are JSON or XML: members, lists, moments and scalars. Types only: application-wire.ts and
// attachment-wire.ts create the values, render-json.ts and render-xml.ts render them.

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

/** Text that is sent unchanged. */
export interface Verbatim {
  readonly json: string;
  readonly xml: string;
}
