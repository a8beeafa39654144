// What people are known by, an e-mail address and an account, as they are typed, pasted and passed on: with quotes around them, with
// characters that cannot be seen. Two forms of the same must come out the same here, and the addresses of two people must not.

/** Characters that take no place: soft hyphens, zero-width ones, marks of direction. */
export const unseen =
  '\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff';
const anyUnseen = new RegExp(`[${unseen}]`, 'gu');

/** A text as it looks: full-width letters as plain ones, without what cannot be seen, control characters as spaces. */
function toVisible(text: string): string {
  return text
    .normalize('NFKC')
    .replace(anyUnseen, '')
    .replace(/[\p{Cc}\p{Cf}]/gu, ' ');
}

/** The bare address in what was typed or sent: `Jo <jo@example.org>`, quotes around it, `mailto:` and what cannot be seen are taken off. */
export function toBareAddress(text: string): string {
  const visible = toVisible(text);
  const [, inBrackets] = /<([^<>]*@[^<>]*)>\s*$/.exec(visible) ?? [];
  const bare = (inBrackets ?? visible).trim().replace(/^mailto:\s*/i, '');
  return bare.replace(/^(['"])(.*)\1$/s, '$2');
}

/** What sources write where there is no account. */
export const nobody = ['-1', 'null', 'nil', 'none', 'undefined', 'nan', 'n/a', 'unknown', 'anonymous'];
const isNobody = new RegExp(`^(?:(?:0|[^\\p{L}\\p{N}])*|${nobody.join('|')})$`, 'iu');

/** The id of an account without what cannot be seen, its letters as they came; null where it names nobody: empty, all zeros, or a word for it. */
export function toAccountId(text: string | null | undefined): string | null {
  const id = text?.replace(anyUnseen, '').trim() ?? '';
  return isNobody.test(id) ? null : id;
}

/**
 * Every address that is written in JSON, as a search for it would find it there. What was erased is remembered by hashes, in which nothing
 * can be searched: of what may be one address or another, both are given.
 */
export function findAddresses(json: string): string[] {
  const text = toVisible(json.replace(/\\(?:u[0-9a-f]{4}|.)/gi, ' ')).toLowerCase();
  const parts = text.split(/\s{0,9}(?:@|%40)\s{0,9}/);
  const addresses = parts.slice(1).flatMap((right, at) => {
    const [domain = ''] = /^[\p{L}\p{N}\p{M}.-]+/u.exec(right) ?? [];
    const local =
      parts[at]
        ?.slice(-longestLocal)
        .split(/[\s"<>()[\]{},;:]/)
        .at(-1) ?? '';
    return [...local.matchAll(beginnings)].map(({ index }) => `${local.slice(index)}@${domain.replace(/[.-]+$/, '')}`);
  });
  return [...new Set(addresses)];
}

const longestLocal = 100;

/** Where an address can begin: not within a word, nor behind what joins it to one. */
const beginnings = /(?<![\p{L}\p{N}_%+])(?<![\p{L}\p{N}_][.'-]+)./gu;

/** Every jobseeker account that is named in JSON. */
export function findAccounts(json: string): string[] {
  const members = json.matchAll(/"jobseekerid"\s*:\s*("[^"]*"|[\w.+-]+)/gi);
  return [...new Set([...members].flatMap(([, id = '']) => toAccountId(id.replace(/"|\\[nrt]/g, ' ')) ?? []))];
}
