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
