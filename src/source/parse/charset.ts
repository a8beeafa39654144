// Decodes the bytes of an answer. The bytes decide before the charset header, which is wrong more often than they are.
// A word with invalid bytes has lone surrogates, U+DC80 to U+DCFF, for all its bytes from 0x80 on: columns show U+FFFD, raw keeps them.
// Never guesses between national charsets.

import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { refuse } from './values.ts';

/** Decodes by byte order mark; without one as UTF-16 if zero bytes indicate it, as UTF-8 if that is valid, else as declared. */
export function decodeText(bytes: Uint8Array, contentType: string | undefined): string {
  const body = withoutMark(bytes);
  const order = toByteOrder(body);
  if (order !== null) return decodeUtf16(body, order);
  if (isUtf8(body)) return new TextDecoder().decode(body);
  return decodeParts(body, toDecoder(toDeclaredCharset(body, contentType)));
}

/** The bytes behind the byte order mark of UTF-8. */
export function withoutMark(body: Uint8Array): Uint8Array {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

function toByteOrder(body: Uint8Array): 'little' | 'big' | null {
  const [first, second] = body;
  if (first === 0xff && second === 0xfe) return 'little';
  if (first === 0xfe && second === 0xff) return 'big';
  // JSON and XML begin with an ASCII character: a zero byte beside it is half of a UTF-16 code unit.
  if (body.length > 1 && first === 0) return 'big';
  if (body.length > 1 && second === 0) return 'little';
  return null;
}

/** Keeps lone surrogates, which TextDecoder would replace. */
function decodeUtf16(body: Uint8Array, order: 'little' | 'big'): string {
  const units = Buffer.from(body.subarray(0, body.length - (body.length % 2)));
  if (order === 'big') units.swap16();
  return units.toString('utf16le').replace(/^\ufeff/, '');
}

function toDeclaredCharset(body: Uint8Array, contentType: string | undefined): string | undefined {
  const header = /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType ?? '')?.[1];
  const prolog = Buffer.from(body.subarray(0, 200)).toString('latin1');
  const declaration = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']/i.exec(prolog)?.[1];
  // The body is not UTF-8, so a header that says so is wrong; the XML declaration may still be right.
  return header === undefined || /^utf-?8$/i.test(header) ? (declaration ?? header) : header;
}

/** The bytes below 0x30 are characters of their own in every charset but these two, where a header that names them is wrong. */
function toDecoder(charset = 'utf-8'): TextDecoder {
  try {
    const decoder = new TextDecoder(charset, { ignoreBOM: true });
    return /^(?:utf-16|iso-2022)/.test(decoder.encoding) ? toDecoder() : decoder;
  } catch {
    return toDecoder();
  }
}

/** The most bytes of words with invalid ones. JSON writes each byte with six characters, and each takes memory from here on. */
const mostInvalid = 1_000_000;

/** Decodes parts of about a thousand bytes, and those with invalid ones word by word. Words lie between bytes below 0x30. */
function decodeParts(body: Uint8Array, decoder: TextDecoder): string {
  let invalid = 0;
  const decodeWord = (word: string) => {
    if (!/[\x80-\xff]/.test(word)) return word;
    const bytes = Buffer.from(word, 'latin1');
    const text = decoder.decode(bytes);
    if (!text.includes('\ufffd')) return text;
    // U+FFFD itself, or a word in another charset.
    if (isUtf8(bytes)) return bytes.toString();
    invalid += word.length;
    if (invalid > mostInvalid) refuse('is not text in its charset');
    const at = text.indexOf('\ufffd');
    const kept = bytes.filter((byte) => byte > 0x7f);
    const standIns = Array.from(kept, (byte) => String.fromCharCode(0xdc00 + byte));
    // Right behind an escaped surrogate, the first one would be the other half of a character.
    const isBehindHalf = /\\ud[89ab]..$|;$/i.test(text.slice(Math.max(0, at - 6), at));
    return text.slice(0, isBehindHalf ? at + 1 : at) + standIns.join('') + text.slice(at + 1);
  };
  const parts: string[] = [];
  for (let from = 0, to = 0; from < body.length; from = to) {
    for (to = from + 1_000; (body[to] ?? 0) > 0x2f; ) to++;
    const part = body.subarray(from, to);
    const text = decoder.decode(part);
    const words = Buffer.from(part).toString('latin1');
    parts.push(text.includes('\ufffd') ? words.replace(/[^\0-\x2f]+/g, decodeWord) : text);
  }
  return parts.join('');
}
