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
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    const decoder = toDecoder(toDeclaredCharset(body, contentType));
    const text = decoder.decode(body);
    return text.includes('\ufffd') ? keepInvalid(text, body) : text;
  }
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

/** The most characters of words with invalid bytes. JSON writes each byte with six characters, and each takes memory from here on. */
const mostInvalid = 1_000_000;

/**
 * Puts the bytes of each word with invalid ones into its text, in place of its first U+FFFD. Words lie between bytes below 0x30, which the
 * text has as well; where it has others, it stays as it is.
 */
function keepInvalid(text: string, body: Uint8Array): string {
  const units = new Uint16Array(body).map((byte) => (byte < 0x80 ? byte : 0xdc00 + byte));
  const standIns = Buffer.from(units.buffer).toString('utf16le');
  const parts: string[] = [];
  let kept = '';
  let copied = 0;
  let invalid = 0;
  for (let from = 0, byteFrom = 0; from <= text.length; from++, byteFrom++) {
    const [first, firstByte] = [from, byteFrom];
    let isInvalid = false;
    for (; text.charCodeAt(from) > 0x2f; from++) isInvalid ||= text.charCodeAt(from) === 0xfffd;
    while ((body[byteFrom] ?? 0) > 0x2f) byteFrom++;
    if ((text.charCodeAt(from) || 0) !== (body[byteFrom] ?? 0)) return text;
    if (!isInvalid) continue;
    const bytes = body.subarray(firstByte, byteFrom);
    // U+FFFD itself, or a word in another charset.
    const word = isUtf8(bytes)
      ? Buffer.from(bytes).toString()
      : putInto(text.slice(first, from), standIns.slice(firstByte, byteFrom).replace(/[\0-\x7f]+/g, ''));
    invalid += word.length;
    if (invalid > mostInvalid) refuse('is not text in its charset');
    parts.push(text.slice(copied, first), word);
    copied = from;
    // A part takes more memory than its text, and there may be millions.
    if (parts.length > 10_000) kept += parts.splice(0).join('');
  }
  return kept + parts.join('') + text.slice(copied);
}

/** Right behind an escaped surrogate, the first stand-in would be the other half of a character. */
function putInto(word: string, standIns: string): string {
  const at = word.indexOf('\ufffd');
  const isBehindHalf = /\\ud[89ab]..$|;$/i.test(word.slice(Math.max(0, at - 6), at));
  return word.slice(0, isBehindHalf ? at + 1 : at) + standIns + word.slice(at + 1);
}
