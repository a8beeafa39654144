// Shows the progress of a long command: a bar with rate and remaining time on a terminal, plain lines elsewhere, both on stderr;
// NDJSON events with --json.

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
