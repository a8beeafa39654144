// Decodes the bytes of an answer. The bytes decide before the charset header, which is wrong more often than they are.
// Reports when bytes had to be replaced, so that it can be noted. Never guesses between national charsets.

import { TextDecoder } from 'node:util';

export interface DecodedText {
  readonly text: string;
  /** The body as Latin-1, one character per byte, when some bytes had to be replaced by U+FFFD; otherwise null. */
  readonly bytesAsText: string | null;
}

/** Decodes by byte order mark; without one as UTF-16 if zero bytes indicate it, as UTF-8 if that is valid, else as declared. */
export function decodeText(bytes: Uint8Array, contentType: string | undefined): DecodedText {
  const body = withoutMark(bytes);
  const marked = toMarkedCharset(body);
  if (marked !== null) return decoded(new TextDecoder(marked).decode(body));
  try {
    return decoded(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    const declared = toDecoder(toDeclaredCharset(body, contentType));
    if (declared !== null && declared.encoding !== 'utf-8') return decoded(declared.decode(body));
    return { text: new TextDecoder('utf-8').decode(body), bytesAsText: Buffer.from(body).toString('latin1') };
  }
}

/** The bytes behind the byte order mark of UTF-8. */
export function withoutMark(body: Uint8Array): Uint8Array {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

function toMarkedCharset(body: Uint8Array): string | null {
  const [first, second] = body;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  // JSON and XML begin with an ASCII character: a zero byte beside it is half of a UTF-16 code unit.
  if (body.length > 1 && first === 0) return 'utf-16be';
  if (body.length > 1 && second === 0) return 'utf-16le';
  return null;
}

function toDeclaredCharset(body: Uint8Array, contentType: string | undefined): string | undefined {
  const header = /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType ?? '')?.[1];
  const prolog = Buffer.from(body.subarray(0, 200)).toString('latin1');
  const declaration = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']/i.exec(prolog)?.[1];
  // The body is not UTF-8, so a header that says so is wrong; the XML declaration may still be right.
  return header === undefined || /^utf-?8$/i.test(header) ? (declaration ?? header) : header;
}

function toDecoder(charset: string | undefined): TextDecoder | null {
  if (charset === undefined) return null;
  try {
    return new TextDecoder(charset);
  } catch {
    return null;
  }
}

function decoded(text: string): DecodedText {
  return { text, bytesAsText: null };
}
