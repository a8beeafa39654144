// Bytes of a list to text, whatever the charset header says: headers are wrong more often than bytes are.
// Says when bytes had to be replaced, so that it can be noted; never guesses between national charsets.

import { TextDecoder } from 'node:util';

/** A body as text. */
export interface DecodedText {
  readonly text: string;
  /** The body byte by byte as Latin-1, where some bytes had to be replaced by U+FFFD; otherwise null. */
  readonly bytesAsText: string | null;
}

/** Decodes by byte order mark, then as UTF-16 where zero bytes show it, as UTF-8 where it is valid, else as declared. */
export function decodeText(body: Uint8Array, contentType: string | undefined): DecodedText {
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

function toMarkedCharset(body: Uint8Array): string | null {
  const [first, second] = body;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  // JSON and XML begin with an ASCII character: a zero beside it is half of a UTF-16 unit.
  if (body.length > 1 && first === 0) return 'utf-16be';
  if (body.length > 1 && second === 0) return 'utf-16le';
  return null;
}

function toDeclaredCharset(body: Uint8Array, contentType: string | undefined): string | undefined {
  const header = /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType ?? '')?.[1];
  const prolog = Buffer.from(body.subarray(0, 200)).toString('latin1');
  const declaration = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']/i.exec(prolog)?.[1];
  // A header that claims UTF-8 was just refuted; the document's own word may still be right.
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
