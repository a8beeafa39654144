// The output of a command: its result on stdout, as text or as JSON; everything else on stderr.
// Text from outside goes through `toPrintable` before it is shown.

import { toJson } from '../domain/format.ts';

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

interface State {
  readonly label: string;
  readonly done: number;
  readonly total: number | null;
  readonly detail?: string;
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
  let state: State | null = null;
  let shown = 'null';
  const show = () => {
    // A line that would repeat the last one says nothing.
    if (state === null || JSON.stringify(state) === shown) return;
    shown = JSON.stringify(state);
    shownAt = now();
    if (event) return event({ progress: state });
    const line = toLine(state, shownAt - startedAt, isBar);
    // A line that wraps could not be drawn over.
    stderr.write(isBar ? `\r${line.slice(0, (stderr.columns ?? 80) - 1)}\u001b[K` : `${line}\n`);
  };
  return {
    update(done, total, detail) {
      state = { label, done, total, ...(detail && { detail }) };
      if (now() - shownAt >= (isBar ? 100 : 5_000)) show();
    },
    [Symbol.dispose]() {
      show();
      if (isBar && state !== null) stderr.write('\n');
      state = null;
    },
  };
}

function toLine({ label, done, total, detail }: State, elapsedMs: number, isBar: boolean): string {
  const rate = elapsedMs >= 1_000 ? Math.round((done * 1_000) / elapsedMs) : 0;
  const counts = [`${label} ${done}${total === null ? '' : ` of ${total}`}`, rate > 0 && `${rate}/s`, detail];
  if (!isBar || total === null) return counts.filter(Boolean).join(', ');
  const full = Math.round((barWidth * Math.min(done, total)) / Math.max(1, total));
  const left = rate > 0 && done < total && `${Math.ceil((total - done) / rate)} s left`;
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} ${[...counts, left].filter(Boolean).join(', ')}`;
}
