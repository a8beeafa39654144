// What a command says: its result on stdout, as text for people or as JSON for programs; everything else on stderr.
// Knows streams and colours, no command. Text that came from outside goes through `toPrintable` before it is shown.

import { createColors } from 'picocolors';
import type { Output, Progress } from './progress.ts';

/** Where a command speaks. */
export interface Terminal {
  /** True where somebody looks at stdout: what is there can be drawn over. */
  readonly isScreen: boolean;
  /** Paints text for stdout; plain where stdout is no terminal or NO_COLOR is set. */
  readonly colors: ReturnType<typeof createColors>;
  /** The command's outcome: one object with `--json`, otherwise the text. */
  result(value: object, render: () => string): void;
  /** One line of NDJSON with `--json`, nothing otherwise. For commands that take long. */
  event(value: object): void;
  /** A line for the person who waits. */
  note(text: string): void;
  /** A bar on a terminal, a line every few seconds elsewhere, NDJSON with `--json`. */
  openProgress(label: string): Promise<Progress>;
}

export function createTerminal(stdout: Output, stderr: Output, json: boolean, env: Colouring): Terminal {
  const writeJson = (value: object) => void stdout.write(`${toJson(value)}\n`);
  return {
    isScreen: stdout.isTTY === true && !json,
    colors: createColors(isColoured(stdout, env)),
    result: (value, render) => (json ? writeJson(value) : void stdout.write(withLineEnd(render()))),
    event: (value) => (json ? writeJson(value) : undefined),
    note: (text) => void stderr.write(withLineEnd(text)),
    async openProgress(label) {
      const { createProgress } = await import('./progress.ts');
      return createProgress(label, { stderr, ...(json && { event: writeJson }) });
    },
  };
}

type Colouring = Readonly<Record<string, string | undefined>>;

/** The conventions of no-color.org and force-color.org, then whether somebody is looking. */
export function isColoured(output: Output, env: Colouring): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0';
  return output.isTTY === true && env.TERM !== 'dumb';
}

/** JSON on one line; ids beyond 2^53 keep their digits, as text. */
export function toJson(value: object): string {
  return JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? member.toString() : member));
}

/** Text that cannot steer a terminal: a name may hold escape sequences, and right-to-left marks reorder a line. */
export function toPrintable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd');
}

function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
