// Normalizes what identifies a person, an e-mail address and an account id. They arrive as people type and paste them: in quotes, with
// invisible characters. Two spellings of one address must normalize to the same text, and the addresses of two people must not.

/** Invisible characters: soft hyphens, zero-width characters, direction marks. */
export const unseen =
  '\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff';
const anyUnseen = new RegExp(`[${unseen}]`, 'gu');

/** A text as it looks: full-width letters become plain ones, invisible characters go, control characters become spaces. */
function toVisible(text: string): string {
  return text
    .normalize('NFKC')
    .replace(anyUnseen, '')
    .replace(/[\p{Cc}\p{Cf}]/gu, ' ');
}

/** The bare address in typed or sent text. Removes the name of `Jo <jo@example.org>`, quotes, `mailto:` and invisible characters. */
export function toBareAddress(text: string): string {
  const visible = toVisible(text);
  const [, inBrackets] = /<([^<>]*@[^<>]*)>\s*$/.exec(visible) ?? [];
  const bare = (inBrackets ?? visible).trim().replace(/^mailto:\s*/i, '');
  return bare.replace(/^(['"])(.*)\1$/s, '$2');
}

/** Values that sources write in place of an account id. */
export const nobody = ['-1', 'null', 'nil', 'none', 'undefined', 'nan', 'n/a', 'unknown', 'anonymous'];
const isNobody = new RegExp(`^(?:(?:0|[^\\p{L}\\p{N}])*|${nobody.join('|')})$`, 'iu');

/** An account id without invisible characters, its letters unchanged; null where it names nobody: empty, zeros, or a word like `none`. */
export function toAccountId(text: string | null | undefined): string | null {
  const id = text?.replace(anyUnseen, '').trim() ?? '';
  return isNobody.test(id) ? null : id;
}

/**
 * Every address in a JSON text. Erased addresses are known only by their hashes, which allow exact comparison but no search. So where a
 * text can be read as one address or another, this returns both.
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

/** Where an address can begin: not within a word, and not after a dot, an apostrophe or a hyphen that joins it to a word. */
const beginnings = /(?<![\p{L}\p{N}_%+])(?<![\p{L}\p{N}_][.'-]+)./gu;

/** Every jobseeker account id in a JSON text. */
export function findAccounts(json: string): string[] {
  const members = json.matchAll(/"jobseekerid"\s*:\s*("[^"]*"|[\w.+-]+)/gi);
  return [...new Set([...members].flatMap(([, id = '']) => toAccountId(id.replace(/"|\\[nrt]/g, ' ')) ?? []))];
}
