// Expressions that find whole addresses and account ids in columns and in JSON: jo@example.com is not in banjo@example.com.au.
import { joining, mostSearched, nobody, toBareAddress } from '../domain/person.ts';

/** Unicode's Default_Ignorable_Code_Point, which Postgres knows by no name. */
const unseen =
  '[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]';

function removeUnseen(text: string): string {
  return `regexp_replace(${text}, '${unseen}', '', 'g')`;
}

/** Whether a text contains one of these addresses. The source passes on what people typed: full-width and zero-width characters too. */
export function isAddressIn(text: string, patterns: string): string {
  // As toVisible does. Postgres 18 has the tables of Unicode 16, which lack a letter.
  const plain = `normalize(translate(${text}, '\ua7f1\ufdfa\ufdfb', 'S  '), NFKC)`;
  const small = `translate(lower(${removeUnseen(plain)}), 'Σςİ', 'σσi')`;
  return `regexp_replace(${small}, 'i\u0307+', 'i', 'g') ~ ANY (lower(${patterns}::text[]::text)::text[])`;
}

/** Like `isAddressIn`, for JSON, where an escaped line break may precede the address. */
export function isAddressInJson(json: string, patterns: string): string {
  return isAddressIn(
    `regexp_replace(left(${json}, ${mostSearched}), '\\\\(?:u[[:xdigit:]]{4}|.)', ' ', 'g')`,
    patterns,
  );
}

/**
 * A sign that the part before the @ can have is another address's, except behind an @. Dots and quotes before it, and what follows, belong to
 * it only where they join it to a word. toBareAddress replaces Σ and İ as isAddressIn does: their small letters depend on the locale.
 */
export function toAddressPattern(email: string): string {
  const address = quote(toBareAddress(email)).replace('\\@', '\\s*(?:@|%40)\\s*');
  const sign = joining.replace(/./g, '\\$&');
  const begins = `(?:(?<![\\w@${sign}])(?<!\\w[.']+)|(?<=(?:@|%40)[^\\s@]*[${sign}]))`;
  return `${begins}${address}(?!(?:\\.|[@_-]+)?[[:alnum:]])`;
}

/** Whether a column's id names an account, by the rules of toAccountId. */
export function isAccount(column: string): string {
  return `${accountIn(column)} !~* '^(?:(?:0|[^[:alnum:]])*|${nobody.join('|')})$'`;
}

/** What JavaScript's trim removes. Postgres's \s depends on the locale, and JSON writes some of it as an escape. */
const blank = '[\\u0009-\\u000d \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';

/** A column's id without invisible characters and surrounding white space, as by toAccountId. */
export function accountIn(column: string): string {
  return `regexp_replace(${removeUnseen(column)}, '^${blank}+|${blank}+$', '', 'g')`;
}

/** Whether JSON contains an account id, by one of these patterns. */
export function isAccountInJson(json: string, patterns: string): string {
  return `${removeUnseen(`left(${json}, ${mostSearched})`)} ~ ANY (${patterns}::text[])`;
}

/** The id may be a string or a number, also inside lists and objects, and its member's name may be in any case. */
export function toAccountPattern(account: string): string {
  const id = quote(JSON.stringify(account).slice(1, -1));
  const blanks = `(?:${blank}|\\\\(?:[fnrt]|u000b))*`;
  return `"@?[Jj][Oo][Bb][Ss][Ee][Ee][Kk][Ee][Rr][Ii][Dd]"\\s*:\\s*${within}(?:"${blanks}${id}${blanks}"(?!\\s*:)|(?<![\\w.+-])${id}(?=\\s*[],}]))`;
}

/** What may precede a value in a list or an object: up to three of them that are open, with others that are closed again. */
const [open, plain] = ['[[{]', '"(?:[^"\\\\]|\\\\.)*"|[^][{}"]'];
const closed = `${open}(?:${plain}|${open}(?:${plain}|${open}(?:${plain})*[]}])*[]}])*[]}]`;
const within = `(?:${open}(?:${plain}|${closed})*){0,3}`;

function quote(text: string): string {
  return text.replace(/[^\p{L}\p{N}_]/gu, '\\$&');
}
