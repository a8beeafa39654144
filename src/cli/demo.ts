// `intake demo`: the whole of Intake on one machine without an account: embedded Postgres, the sandbox, a first full round,
// a look at the rows, then a live worker until Ctrl-C. What it leaves in .intake/ lets the next demo go on where this one stopped.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sandbox } from '../dev/sandbox/http/server.ts';
import { toCount } from './arguments.ts';
import { type Context, command } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { Failure } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';
import { reportOutcomes, showReading } from './read-report.ts';
import { loadSandbox } from './sandbox.ts';

interface DemoOptions {
  readonly once: boolean;
  readonly applications?: string;
}

const newBoardSize = 2_000;
const betweenArrivalsMs = 5_000;

export const demo = command<DemoOptions>({
  name: 'demo',
  summary: 'try everything on this machine: embedded Postgres, a sandbox job board, a live worker',
  examples: [
    ['intake demo', 'fill a database and keep it live until Ctrl-C; other commands work beside it'],
    ['intake demo --once', 'end after the first full round'],
  ],
  shape: (shaped) =>
    shaped
      .option('--once', 'end after the first full round', false)
      .option('--applications <count>', `how many applications a new board starts with (default: ${newBoardSize})`),
  async run(context, options) {
    const { terminal } = context;
    const wanted = options.applications === undefined ? null : toCount('--applications', options.applications);
    const { findRunningDemo, openDemoSettings } = await import('../config/local.ts');
    const { checkoutStateDir } = await import('../config/state-dir.ts');
    const running = findRunningDemo(checkoutStateDir);
    if (running !== null) {
      throw new Failure(exitCodes.held, `A demo already runs in this checkout (process ${running}).`, {
        kept: 'Everything, untouched.',
        next: 'Use the commands beside it, or end it with Ctrl-C; another checkout can run its own.',
      });
    }
    await loadSandbox('demo');
    terminal.note('Starting a sandbox job board and an embedded Postgres (kept in .intake/).');
    await using board = await openBoard(checkoutStateDir, wanted ?? newBoardSize);
    if (wanted !== null && board.begunWith !== wanted) {
      terminal.note(
        `The board of the demo before goes on, which began with ${board.begunWith} applications: --applications is for a first demo in a checkout.`,
      );
    }
    const { createDemoPrefill, findFreePort, openDemoSite } = await import('./demo-prefill.ts');
    const prefill = await createDemoPrefill(board);
    const env = {
      ...prefill.env,
      ADMIN_PORT: String(await findFreePort()),
      SYNC_SCHEDULE: '*/5 * * * * *',
      SOURCE_URL: board.url,
      SOURCE_CREDENTIAL: board.credential,
      SOURCE_RATE: 'off',
      DATABASE_URL: 'embedded',
    };
    using _settings = openDemoSettings(env, checkoutStateDir);
    const config = await loadCommandConfig(
      { ...env, NODE_ENV: 'development' },
      { needs: ['database', 'source', 'sync', 'blobs', 'admin', 'prefill', 'privacy'] },
    );
    // Held open until the end, so that the database does not stop between the first round and the worker.
    const { openLocalDatabase } = await import('../app.ts');
    await using database = await openLocalDatabase(config);

    const { syncOnce } = await import('../app.ts');
    const outcomes = await showReading(context, (events) =>
      syncOnce(config, { ...events, recheck: false, files: true, signal: context.signal }),
    );
    const code = await reportOutcomes(context, outcomes);
    await showAds(context, database.url);
    terminal.note(toNextSteps(database.url, options.once));
    if (code !== exitCodes.done || options.once) return code;

    await using _site = openDemoSite(board, prefill);
    terminal.note(`A careers site with a button that fills in its form: ${prefill.siteUrl}/`);
    return await keepLive(context, config, board);
  },
});

/** The board of this checkout: the same people and times as in the demo before, those who applied meanwhile included. */
async function openBoard(stateDir: string, applications: number): Promise<Board> {
  const boardFile = join(stateDir, 'demo-board.json');
  const { openSandbox } = await loadSandbox('demo');
  const kept = loadBoard(boardFile) ?? { startedAt: Date.now(), applications, added: [] };
  const added = [...kept.added];
  const save = () => {
    try {
      mkdirSync(stateDir, { recursive: true });
      // Whole or not at all: half a file would be a new board, of strangers.
      writeFileSync(`${boardFile}.new`, JSON.stringify({ ...kept, added }));
      renameSync(`${boardFile}.new`, boardFile);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      throw new Failure(exitCodes.usage, `The demo cannot write into ${stateDir} (${code}).`, {
        kept: 'What was there before.',
        next: 'Make room on the disk, or give this user the folder to write in; then start it again.',
        cause: error,
      });
    }
  };
  save();
  let now = () => kept.startedAt;
  const board = await openSandbox({ seed: 1, applications: kept.applications, now: () => now() });
  board.add(kept.added.map((submittedAt) => ({ submittedAt })));
  now = Date.now;
  return Object.assign(board, {
    begunWith: kept.applications,
    // Written down before anybody can read it: a demo that is killed forgets nobody whom the database knows.
    arrive(count: number) {
      const times = Array.from({ length: count }, () => Date.now());
      added.push(...times);
      save();
      board.add(times.map((submittedAt) => ({ submittedAt })));
    },
  });
}

type Board = Sandbox & { readonly begunWith: number; arrive(count: number): void };

interface KeptBoard {
  readonly startedAt: number;
  readonly applications: number;
  readonly added: readonly number[];
}

function loadBoard(boardFile: string): KeptBoard | undefined {
  try {
    return JSON.parse(readFileSync(boardFile, 'utf8')) as KeptBoard;
  } catch {
    return undefined;
  }
}

type DemoConfig = Parameters<typeof import('../app/worker.ts').runWorker>[0];

async function showAds({ terminal }: Context, url: string): Promise<void> {
  const { loadBusiestAds } = await import('../dev/busiest-ads.ts');
  const ads = await loadBusiestAds(url);
  const { default: Table } = await import('cli-table3');
  const table = new Table({
    head: ['job_reference', 'applications', 'job_seekers', 'last_application'],
    style: { head: [], border: [] },
  });
  for (const ad of ads) {
    table.push([
      ad.job_reference ?? '(none)',
      String(ad.applications),
      String(ad.job_seekers),
      ad.last_application?.toISOString().slice(0, 16) ?? '',
    ]);
  }
  terminal.result({ ads }, () => `\nThe busiest ads, from intake.applications:\n${table.toString()}`);
}

function toNextSteps(databaseUrl: string, once: boolean): string {
  const beside = [
    '  npm run intake -- status',
    '  npm run intake -- sync --recheck',
    '  npm run intake -- verify --full',
  ];
  // The server ends with this demo, and the next one may listen elsewhere.
  if (once) return ['', 'What next: `npm run demo` goes on live, and these work beside it:', ...beside, ''].join('\n');
  return [
    '',
    'The demo goes on: people apply all the time, and a worker reads them every few seconds. Ctrl-C ends it.',
    'Beside it, in another terminal, without any setting:',
    ...beside,
    `  psql '${databaseUrl}' -c 'SELECT * FROM intake.events ORDER BY event_id DESC LIMIT 10'`,
    '',
  ].join('\n');
}

/** A worker until the person has seen enough, and people who apply. */
async function keepLive({ signal, terminal }: Context, config: DemoConfig, board: Board): Promise<ExitCode> {
  const { createLog } = await import('../log.ts');
  const { runWorker } = await import('../app/worker.ts');
  const log = await createLog({ level: 'warn', format: 'auto' });
  const arriving = setInterval(() => board.arrive(1 + Math.floor(Math.random() * 4)), betweenArrivalsMs);
  const tell = (text: string) => terminal.note(`${new Date().toISOString().slice(11, 19)}  ${text}`);
  try {
    await runWorker(config, {
      ...{ log, signal },
      onOpen: (url) => terminal.note(`The worker's status page: ${url}/\n`),
      onPass({ added = 0, files }) {
        if (added > 0) tell(`${added} new, ${board.size} on the board`);
        if (files?.stored) tell(`${files.stored} files`);
      },
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(arriving);
  }
  return exitCodes.done;
}
