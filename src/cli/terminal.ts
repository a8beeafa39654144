// The output of a command: its result on stdout, as text or as JSON; everything else on stderr.
// Text from outside goes through `toPrintable` before it is shown.

import { toJson } from '../domain/format.ts';
import { createProgress, type Output, type Progress } from './progress.ts';

export interface Terminal {
  /** True where stdout is a terminal that can be redrawn. */
  readonly isScreen: boolean;
  /** The command's outcome: one object with `--json`, otherwise the text. */
  result(value: object, render: () => string): void;
  /** One line of NDJSON with `--json`, nothing otherwise. For long commands. */
  event(value: object): void;
  /** A line on stderr for the user. */
  note(text: string): void;
  /** A bar on a terminal, a line every few seconds elsewhere, NDJSON with `--json`. */
  openProgress(label: string): Progress;
}

export function createTerminal(stdout: Output, stderr: Output, json: boolean): Terminal {
  const writeJson = (value: object) => void stdout.write(`${toJson(value)}\n`);
  return {
    isScreen: stdout.isTTY === true && !json,
    result: (value, render) => (json ? writeJson(value) : void stdout.write(withLineEnd(render()))),
    event: (value) => (json ? writeJson(value) : undefined),
    note: (text) => void stderr.write(withLineEnd(text)),
    openProgress: (label) => createProgress(label, stderr, json ? writeJson : null),
  };
}

/** Text that cannot control a terminal: a name may hold escape sequences, and right-to-left marks reorder a line. */
export function toPrintable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd');
}

function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
