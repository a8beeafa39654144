// The output of a command: its result on stdout, as text or as JSON; everything else on stderr.
// Text from outside goes through `toPrintable` before it is shown.

import { toJson } from '../domain/format.ts';

export interface Terminal {
  /** True where stdout is a terminal that can be redrawn. */
  readonly isScreen: boolean;
  /** The command's outcome: one object with `--json`, otherwise the text or its lines; false is none. */
  result(value: object, render: () => string | readonly (string | false)[]): void;
  /** One line of NDJSON with `--json`, nothing otherwise. For long commands. */
  event(value: object): void;
  /** A line on stderr for the user. */
  note(text: string): void;
  /** A bar on a terminal, a line every few seconds elsewhere, NDJSON with `--json`. */
  openProgress(label: string): Progress;
}

export function createTerminal(stdout: Output, stderr: Output, json: boolean): Terminal {
  const writeJson = (value: object) => void stdout.write(`${toJson(value)}\n`);
  const writeLines = (stream: Output, given: string | readonly (string | false)[]) => {
    const text = typeof given === 'string' ? given : given.filter((line) => line !== false).join('\n');
    stream.write(text.endsWith('\n') ? text : `${text}\n`);
  };
  return {
    isScreen: stdout.isTTY === true && !json,
    result: (value, render) => (json ? writeJson(value) : writeLines(stdout, render())),
    event: (value) => (json ? writeJson(value) : undefined),
    note: (text) => writeLines(stderr, text),
    openProgress: (label) => createProgress(label, stderr, json ? writeJson : null),
  };
}

/** Text that cannot control a terminal: a name may hold escape sequences, and right-to-left marks reorder a line. */
export function toPrintable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd');
}

/** Disposing it shows the last state and ends the line. */
export interface Progress extends Disposable {
  /** `total` null: not known yet. `detail` follows the counts. */
  update(done: number, total: number | null, detail?: string): void;
}

/** A stream as the CLI uses it; a test passes its own. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const barWidth = 24;

export function createProgress(
  label: string,
  stderr: Output,
  event: ((value: object) => void) | null,
  now = () => performance.now(),
): Progress {
  const isBar = stderr.isTTY === true && event === null;
  const startedAt = now();
  let shownAt = startedAt;
  let last: Parameters<Progress['update']> | null = null;
  let shown = '';
  const show = () => {
    // A line that would repeat the last one says nothing.
    if (last === null || JSON.stringify(last) === shown) return;
    shown = JSON.stringify(last);
    shownAt = now();
    const [done, total, detail] = last;
    if (event) return event({ progress: { label, done, total, ...(detail && { detail }) } });
    const line = toLine(done, total, detail);
    // A line that wraps could not be drawn over.
    stderr.write(isBar ? `\r${line.slice(0, (stderr.columns ?? 80) - 1)}\u001b[K` : `${line}\n`);
  };
  const toLine = (done: number, total: number | null, detail: string | undefined) => {
    const rate = shownAt - startedAt >= 1_000 ? Math.round((done * 1_000) / (shownAt - startedAt)) : 0;
    const counts = [`${label} ${done}${total === null ? '' : ` of ${total}`}`, rate > 0 && `${rate}/s`, detail];
    if (!isBar || total === null) return counts.filter(Boolean).join(', ');
    const full = Math.round((barWidth * Math.min(done, total)) / Math.max(1, total));
    const left = rate > 0 && done < total && `${Math.ceil((total - done) / rate)} s left`;
    return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} ${[...counts, left].filter(Boolean).join(', ')}`;
  };
  return {
    update(...state) {
      last = state;
      if (now() - shownAt >= (isBar ? 100 : 5_000)) show();
    },
    [Symbol.dispose]() {
      show();
      if (isBar && last !== null) stderr.write('\n');
      last = null;
    },
  };
}
