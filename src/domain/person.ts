// Normalizes what identifies a person, an e-mail address and an account id. They arrive as people type and paste them: in quotes, with
// invisible characters. Two spellings of one address must normalize to the same text, and the addresses of two people must not.
// Strangers write these texts, so every function takes time in proportion to their length.

/** A text without invisible characters: soft hyphens, zero-width characters, direction marks, fillers, variation selectors. */
const removeUnseen = (text: string): string => text.replace(/\p{Default_Ignorable_Code_Point}/gu, '');

/** Cuts long runs of combining marks: to normalize them takes quadratic time, here and in Postgres (measured: 64,000 marks in 2 s). */
export function cutMarks(text: string): string {
  // Most texts have no such run of characters that are not Latin, which is quicker to see.
  if (!/[\u0300-\uffff]{31}/.test(text)) return text;
  let [run, end] = [0, 0];
  // One by one: an expression for a whole run overflows the stack at some millions.
  return text.replace(/[\p{M}\uff9e\uff9f]/gu, (mark, at: number) => {
    run = at === end ? run + 1 : 1;
    end = at + mark.length;
    return run > 30 ? '' : mark;
  });
}

/** A text as it looks: full-width letters become plain ones, invisible characters go, control characters become spaces. */
function toVisible(text: string): string {
  // Two characters stand for a whole sentence each: a text of them would become eighteen times as long.
  const plain = cutMarks(text)
    .replace(/[\ufdfa\ufdfb]/g, ' ')
    .normalize('NFKC');
  const seen = removeUnseen(plain).replace(/[\p{Cc}\p{Cf}]/gu, ' ');
  // The lower case of Σ and İ depends on the place in the word and on the language.
  return seen.replace(/[Σς]/g, 'σ').replace(/İ\u0307*|[iI]\u0307+/g, 'i');
}

/** The bare address in typed or sent text. Removes the name of `Jo <jo@example.org>`, quotes, `mailto:` and invisible characters. */
export function toBareAddress(text: string): string {
  const visible = toVisible(text).trim();
  const inBrackets = visible.endsWith('>') ? visible.slice(visible.lastIndexOf('<') + 1, -1) : '';
  const isAddress = visible.includes('<') && inBrackets.includes('@') && !inBrackets.includes('>');
  const bare = (isAddress ? inBrackets : visible).trim().replace(/^mailto:\s*/i, '');
  const quote = bare.length > 1 && bare.at(-1) === bare[0] ? bare[0] : '';
  return quote === '"' || quote === "'" ? bare.slice(1, -1) : bare;
}

/** The longest address that mail can have, and how much before the sign of one is read in a text. */
const longestAddress = 320;
const longestLocal = 100;

/** A text as one whole address in lower case; null where it is something else. */
export function parseAddress(text: string): string | null {
  const address = toBareAddress(text).toLowerCase();
  const isWhole = address.indexOf('@') > 0 && !address.endsWith('@') && !/\s/.test(address);
  return isWhole && address.length <= longestAddress ? address : null;
}

/** Values that sources write in place of an account id. */
export const nobody = ['-1', 'null', 'nil', 'none', 'undefined', 'nan', 'n/a', 'unknown', 'anonymous'];

/** The longest text that is indexed for lookups, as an account id is. */
export const longestIdentifier = 500;

/** An account id without invisible characters, its letters unchanged; null where it names nobody: empty, zeros, or a word like `none`. */
export function toAccountId(text: string | null | undefined): string | null {
  const id = removeUnseen(text ?? '').trim();
  const isNobody = !/(?!0)[\p{L}\p{N}]/u.test(id) || nobody.includes(id.toLowerCase());
  return isNobody || id.length > longestIdentifier ? null : id;
}

/** How much of a text is searched for people, in characters. A usual application has 3,000. */
export const mostSearched = 6_000_000;

/** A text that names more people than this is not about a person. */
export const mostNamed = 1_000;

/**
 * The addresses in a JSON text, at most one more than `mostNamed`. Erased addresses are known only by their hashes, which allow exact
 * comparison but no search. So where a text can be read as one address or another, this returns both.
 */
export function findAddresses(json: string): string[] {
  const text = toVisible(json.slice(0, mostSearched).replace(/\\(?:u[0-9a-f]{4}|.)/gi, ' ')).toLowerCase();
  const found = new Set<string>();
  let from = 0;
  for (const { index, 0: sign } of text.matchAll(/@|%40/g)) {
    const start = Math.max(from, index - longestLocal);
    const left = `${start === from && from > 0 ? '@' : ''}${text.slice(start, index)}`.trimEnd();
    from = index + sign.length;
    const domain = left && toDomain(text.slice(from, from + longestAddress));
    for (const local of domain === '' ? [] : toLocals(left)) {
      found.add(`${local}@${domain}`);
      if (found.size > mostNamed) return [...found];
    }
  }
  return [...found];
}

function toDomain(right: string): string {
  return /^(?:\[[\w.:]*\]|(?:[._-]*[\p{L}\p{N}\p{M}])*)/u.exec(right.trimStart())?.[0] ?? '';
}

/** Signs that the part of an address before the @ can have, in any place. */
export const joining = '!#$%&*+/=?^`{|}~-';

/**
 * The ways to read the part before the @. It begins neither within a word, nor at a dot or apostrophe that joins words, nor at one of its
 * own signs, except where the @ of another address precedes.
 */
function toLocals(left: string): string[] {
  const last = left.split(/[\s"<>()[\]]/).at(-1) ?? '';
  const isBehind = last.startsWith('@');
  const word = isBehind ? last.slice(1) : last;
  const locals: string[] = [];
  let before = '';
  let at = 0;
  for (const char of word) {
    if (before === '') locals.push(word.slice(at));
    at += char.length;
    if (/[\p{L}\p{N}_]/u.test(char)) before = 'word';
    else if (joining.includes(char)) before = isBehind ? '' : 'sign';
    else if (!".'".includes(char) || before !== 'word') before = '';
  }
  return locals;
}

/** The jobseeker account ids in a JSON text, also in an attribute of XML, a list or an object; at most one more than `mostNamed`. */
export function findAccounts(json: string): string[] {
  const found = new Set<string>();
  const text = json.slice(0, mostSearched);
  const members = /"@?jobseekerid"\s*:/gi;
  const values = /[\s,]*(?:"((?:[^"\\]|\\.)*)"(\s*:)?|([\w.+-]+)|([[{])|[\]}])/y;
  while (members.test(text) && found.size <= mostNamed) {
    values.lastIndex = members.lastIndex;
    for (let depth = 0, value = values.exec(text); value !== null; value = depth > 0 ? values.exec(text) : null) {
      const [, quoted, isName, number, opens] = value;
      members.lastIndex = values.lastIndex;
      if ((quoted ?? number) === undefined) depth += opens ? 1 : -1;
      const id = quoted?.replace(/\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/g, (char) => String(JSON.parse(`"${char}"`)));
      const account = isName ? null : toAccountId(id ?? number);
      if (account !== null && found.size <= mostNamed) found.add(account);
    }
  }
  return [...found];
}

/** The members of an object with one of these names, in any letter case, also as attributes of XML, as JSON. Numbers become texts. */
export function readMembers(json: string, names: readonly string[]): string {
  // An account id may have more digits than a number holds.
  const toText = (_key: string, value: unknown, { source = '' }: { readonly source?: string }) => {
    if (typeof value !== 'number') return value;
    return /^\d+$/.test(source) ? source : String(value);
  };
  const members = Object.entries(Object(JSON.parse(json, toText)));
  return JSON.stringify(
    members.filter(([name]) => names.includes(name.toLowerCase().replace(/^@/, ''))).map(([, value]) => value),
  );
}

/** The texts in JSON at any depth, without the names of members. */
export function listTexts(json: string): string[] {
  const texts: string[] = [];
  JSON.parse(json, (_key, value: unknown) => {
    if (typeof value === 'string') texts.push(value);
  });
  return texts;
}
