// Changes the lines of an exported proof and computes every hash anew, as a forger with time would.
import { hash } from 'node:crypto';

// biome-ignore lint/suspicious/noExplicitAny: a forger changes whatever is there.
export type Json = any;

function parseProof(lines: readonly string[]): Json[] {
  return lines.map((line) => JSON.parse(line));
}

/** The lines with new numbers and hashes; the certificates name the last hash of their sweep. */
function toLines(parsed: readonly Json[]): string[] {
  const lasts = new Map<string, string>();
  let [sweep, n, before] = ['', 0, ''];
  const texts = parsed.slice(1).map((line) => {
    if (line.type === 'rows') return JSON.stringify(line);
    if (line.type === 'sweep') [sweep, n, before] = [line.sweep, 0, '0'.repeat(64)];
    const text = JSON.stringify({ ...line, n: n++, before });
    before = hash('sha256', text, 'hex');
    lasts.set(sweep, before);
    return text;
  });
  const certificates = parsed[0].certificates.map((one: Json) => ({ ...one, last: lasts.get(one.sweep) ?? one.last }));
  return [JSON.stringify({ ...parsed[0], certificates }), ...texts];
}

/** Edits the lines in place, or returns others. */
export function forge(lines: readonly string[], edit: (lines: Json[]) => Json[] | undefined): string[] {
  const parsed = parseProof(lines);
  return toLines(edit(parsed) ?? parsed);
}

export const isAnswer = ({ type }: Json) => type === 'answer';
export const isRange = (line: Json) => isAnswer(line) && line.purpose === 'range';
export const isWitness = (line: Json) => isAnswer(line) && line.purpose === 'witness';
export const isClosing = (line: Json) => isAnswer(line) && line.closed === 'known';
export const isSplit = (line: Json) => isAnswer(line) && line.open !== undefined;
/** The middle one, so that something stands before and after it. */
export const middleOf = (lines: readonly Json[], is: (line: Json) => boolean): Json => {
  const found = lines.filter(is);
  return found[found.length >> 1];
};
export const rowsOf = (lines: readonly Json[]): Json[] =>
  lines.filter(({ type }) => type === 'rows').flatMap(({ rows }) => rows);
/** The end of the last sweep. */
export const endOf = (lines: readonly Json[]): Json => lines.findLast(({ type }) => type === 'end');
export const certificateOf = ([head]: readonly Json[]): Json => head.certificates[0];

export const idsOf = (list = ''): bigint[] => {
  let last = 0n;
  return list === '' ? [] : list.split(' ').map((part) => (last += BigInt(part)));
};
export const toList = (ids: readonly bigint[]) =>
  ids.map((id, nth) => id - (ids[nth - 1] ?? 0n)).join(' ') || undefined;

export type Edit = (lines: Json[]) => Json[] | undefined;
/** Sets members of the middle one of some lines. */
export const set =
  (is: (line: Json) => boolean, members: object | ((line: Json, lines: Json[]) => object)): Edit =>
  (lines) => {
    const line = middleOf(lines, is);
    return void Object.assign(line, typeof members === 'function' ? members(line, lines) : members);
  };
/** Puts lines behind the end of the sweep. */
export const append =
  (...more: ((lines: Json[]) => Json)[]): Edit =>
  (lines) =>
    lines.toSpliced(lines.indexOf(endOf(lines)) + 1, 0, ...more.map((one) => one(lines)));
/** Says a level and a risk at the end and in the certificate. */
export const claim = (certificate: string, risk: string): Edit => {
  return (lines) => void [endOf(lines), certificateOf(lines)].map((one) => Object.assign(one, { certificate, risk }));
};
/** Takes an id out of all these lines. */
export function hide(lines: readonly Json[], id: string): void {
  for (const line of lines)
    if (line.ids !== undefined) line.ids = toList(idsOf(line.ids).filter((one) => String(one) !== id));
}
