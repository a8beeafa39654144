// Addresses and accounts as they are written in columns and in JSON: expressions and patterns of Postgres that find them whole.
// jo@example.com is not written in banjo@example.com, nor in jo@example.com.au.
import { nobody, toBareAddress, unseen } from '../domain/person.ts';

/** Whether an address is written in a text, by a pattern of it. The source passes on what people typed: full-width letters, zero-width ones. */
export function isAddressIn(text: string, pattern: string): string {
  return `lower(translate(normalize(${text}, NFKC), '${unseen}', '')) ~ lower(${pattern}::text)`;
}

/** The same in JSON, where an address may stand behind an escaped line break. */
export function isAddressInJson(json: string, pattern: string): string {
  return isAddressIn(`regexp_replace(${json}, '\\\\(?:u[[:xdigit:]]{4}|.)', ' ', 'g')`, pattern);
}

/** Dots, hyphens and quotes around it are no part of it, unless they join it to a word. */
export function toAddressPattern(email: string): string {
  const address = quote(toBareAddress(email)).replace('\\@', '\\s*(?:@|%40)\\s*');
  return `(?<![\\w%+@])(?<!\\w[.'-]+)${address}(?!(?:\\.|[@_-]+)?[[:alnum:]])`;
}

/** Whether the id of a column names an account, as toAccountId has it. */
export function isAccount(column: string): string {
  return `translate(${column}, '${unseen}', '') !~* '^(?:(?:0|[^[:alnum:]])*|\\s*(?:${nobody.join('|')})\\s*)$'`;
}

/** The id of a column without what surrounds it. */
export function accountIn(column: string): string {
  return `regexp_replace(translate(${column}, '${unseen}', ''), '^[\\s\u00a0]+|[\\s\u00a0]+$', '', 'g')`;
}

/** Whether an account is named in JSON, by one of these patterns. */
export function isAccountInJson(json: string, patterns: string): string {
  return `translate(${json}, '${unseen}', '') ~ ANY (${patterns}::text[])`;
}

/** The id may come as a number, the name of its member in any case. */
export function toAccountPattern(account: string): string {
  const id = quote(JSON.stringify(account).slice(1, -1));
  const blanks = '(?:[\\s\u00a0]|\\\\[nrt])*';
  return `"[Jj][Oo][Bb][Ss][Ee][Ee][Kk][Ee][Rr][Ii][Dd]"\\s*:\\s*(?:"${blanks}${id}${blanks}"|${id}(?=\\s*[,}]))`;
}

function quote(text: string): string {
  return text.replace(/[^\p{L}\p{N}_]/gu, '\\$&');
}
