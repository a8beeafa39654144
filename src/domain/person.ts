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

/** The id of an account without what cannot be seen; its letters are as they came. */
export function toAccountId(text: string): string {
  return text.replace(anyUnseen, '').trim();
}
