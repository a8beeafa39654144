// Shows the progress of a long command: a bar with rate and remaining time on a terminal, plain lines elsewhere, both on stderr;
// NDJSON events with --json. Loaded only by long commands.

import cliProgress from 'cli-progress';

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

interface ProgressOutputs {
  readonly stderr: Output;
  readonly event?: (value: object) => void;
  readonly now?: () => number;
}

const betweenLinesMs = 5_000;

export function createProgress(label: string, outputs: ProgressOutputs): Progress {
  return outputs.stderr.isTTY && !outputs.event ? createBar(label, outputs) : createLines(label, outputs);
}

function createBar(label: string, { stderr, now = performance.now.bind(performance) }: ProgressOutputs): Progress {
  const startedAt = now();
  let known: number | null = null;
  let said = '';
  const bar = new cliProgress.SingleBar(
    {
      stream: stderr as NodeJS.WriteStream,
      hideCursor: true,
      format: (options, { value, progress, eta }) => {
        const counted = `${label} ${toCounted(value, known, now() - startedAt)}${said}`;
        if (known === null || !cliProgress.Format.BarFormat) return counted;
        const left = Number.isFinite(eta) && value < known ? `, ${eta} s left` : '';
        return `${cliProgress.Format.BarFormat(progress, { ...options, barsize: 24 })} ${counted}${left}`;
      },
    },
    cliProgress.Presets.shades_grey,
  );
  bar.start(0, 0);
  return {
    update(done, total, detail = '') {
      known = total;
      said = detail && `, ${detail}`;
      bar.setTotal(total ?? done);
      bar.update(done);
    },
    [Symbol.dispose]: () => bar.stop(),
  };
}

function createLines(
  label: string,
  { stderr, event, now = performance.now.bind(performance) }: ProgressOutputs,
): Progress {
  const startedAt = now();
  let shownAt = startedAt;
  let unseen: { done: number; total: number | null; detail: string } | undefined;
  let shown = '';
  const show = () => {
    // A line that would repeat the last one says nothing.
    if (!unseen || JSON.stringify(unseen) === shown) return;
    const { done, total, detail } = unseen;
    shown = JSON.stringify(unseen);
    if (event) event({ progress: { label, done, total, ...(detail && { detail }) } });
    else stderr.write(`${label} ${toCounted(done, total, now() - startedAt)}${detail && `, ${detail}`}\n`);
    shownAt = now();
    unseen = undefined;
  };
  return {
    update(done, total, detail = '') {
      unseen = { done, total, detail };
      if (now() - shownAt >= betweenLinesMs) show();
    },
    [Symbol.dispose]: show,
  };
}

function toCounted(done: number, total: number | null, elapsedMs: number): string {
  const rate = elapsedMs >= 1_000 ? Math.round((done * 1_000) / elapsedMs) : 0;
  return `${done}${total === null ? '' : ` of ${total}`}${rate === 0 ? '' : `, ${rate}/s`}`;
}
