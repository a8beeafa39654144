// Encodes text. Spec: UTF-8, declared in the Content-Type. Spec silent: whether that is always so.

import type { Choices } from '../behaviour/choices.ts';
import type { Notation } from './listing.ts';
import type { WireAnswer } from './transport.ts';

const pieceBytes = 65_536;

/** A successful text answer, in pieces of about 64 KB. */
export function toEncoded(text: Iterable<string>, notation: Notation, choices: Choices): WireAnswer {
  const labels: Readonly<Record<Choices['charset'], string>> = {
    utf8: '; charset=utf-8',
    unlabelled: '',
    mislabelled: '; charset=iso-8859-1',
    utf8WithMark: '; charset=utf-8',
    utf16: '; charset=utf-16',
  };
  const headers = { 'Content-Type': `application/${notation}${labels[choices.charset]}` };
  return { status: 200, headers, body: toPieces(text, choices) };
}

function* toPieces(text: Iterable<string>, choices: Choices): Generator<Buffer> {
  const encoding = choices.charset === 'utf16' ? 'utf16le' : 'utf8';
  let pending = choices.charset === 'utf16' || choices.charset === 'utf8WithMark' ? '\uFEFF' : '';
  for (const part of text) {
    pending += part;
    if (pending.length < pieceBytes) continue;
    yield Buffer.from(pending, encoding);
    pending = '';
  }
  if (pending !== '') yield Buffer.from(pending, encoding);
}
