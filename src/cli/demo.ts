// `intake demo`: the whole of Intake on one machine without an account: embedded Postgres, the sandbox, a first full round,
// a look at the rows, then live rounds until Ctrl-C. What it leaves in .intake/ lets the next demo go on where this one stopped.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from '../sandbox/server.ts';
import { type Context, command } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { Failure } from './failure.ts';
import { reportOutcomes, showReading } from './reading.ts';
import { toCount } from './sandbox.ts';

interface DemoOptions {
  readonly once: boolean;
  readonly applications: string;
}

const stateDir = '.intake';
const boardFile = `${stateDir}/demo-board.json`;
const betweenRoundsMs = 5_000;

export const demo = command<DemoOptions>({
  name: 'demo',
  summary: 'try everything on this machine: embedded Postgres, a sandbox job board, live rounds',
  examples: [
    ['intake demo', 'fill a database and keep it live until Ctrl-C; other commands work beside it'],
    ['intake demo --once', 'end after the first full round'],
  ],
  shape: (shaped) =>
    shaped
      .option('--once', 'end after the first full round', false)
      .option('--applications <count>', 'how many applications the board starts with', '2000'),
  async run(context, options) {
    const { terminal } = context;
    const { findRunningDemo, openDemoSettings } = await import('../config/local.ts');
    const running = findRunningDemo(stateDir);
    if (running !== null) {
      throw new Failure(exitCodes.held, `A demo already runs in this checkout (process ${running}).`, {
        kept: 'Everything, untouched.',
        next: 'Use the commands beside it, or end it with Ctrl-C; another checkout can run its own.',
      });
    }
    const { loadConfig } = await import('../config.ts');
    terminal.note('Starting a sandbox job board and an embedded Postgres (kept in .intake/).');
    await using board = await openBoard(toCount('--applications', options.applications));
    const { createDemoPrefill, openDemoSite } = await import('./demo-prefill.ts');
    const prefill = await createDemoPrefill(board);
    const env = {
      ...prefill.env,
      SOURCE_URL: board.url,
      SOURCE_CREDENTIAL: board.credential,
      SOURCE_RATE: 'off',
      DATABASE_URL: 'embedded',
    };
    using _settings = openDemoSettings(env, stateDir);
    const config = loadConfig(
      { ...env, NODE_ENV: 'development' },
      { needs: ['database', 'source', 'sync', 'blobs', 'prefill', 'privacy'] },
    );
    // Held open until the end, so that the database does not stop between two rounds.
    const { openLocalDatabase } = await import('../app.ts');
    await using database = await openLocalDatabase(config);

    const { syncOnce } = await import('../app.ts');
    const outcomes = await showReading(context, (events) =>
      syncOnce(config, { ...events, recheck: false, files: true, signal: context.signal }),
    );
    const code = await reportOutcomes(context, outcomes);
    await showJobs(context, config);
    terminal.note(toNextSteps(database.url, options.once));
    if (code !== exitCodes.done || options.once) return code;

    const { openPrefillServer } = await import('../app/prefill.ts');
    const { createLog } = await import('../log.ts');
    const log = await createLog({ level: 'warn', format: 'auto' });
    await using _routes = await openPrefillServer(config, { log, signal: context.signal });
    await using _site = openDemoSite(board, prefill);
    terminal.note(`A careers site with a button that fills in its form: ${prefill.siteUrl}/\n`);
    return await keepLive(context, config, board);
  },
});

/** The board of this checkout: the same people and times as in the demo before, those who applied meanwhile included. */
async function openBoard(applications: number): Promise<Board> {
  const { openSandbox } = await import('../sandbox/server.ts');
  const kept = loadBoard() ?? { startedAt: Date.now(), applications, added: [] };
  let now = () => kept.startedAt;
  const board = await openSandbox({ seed: 1, applications: kept.applications, now: () => now() });
  board.add(kept.added.map((submittedAt) => ({ submittedAt })));
  now = Date.now;
  const added = [...kept.added];
  const save = () => {
    mkdirSync(stateDir, { recursive: true });
    // Whole or not at all: half a file would be a new board, of strangers.
    writeFileSync(`${boardFile}.new`, JSON.stringify({ ...kept, added }));
    renameSync(`${boardFile}.new`, boardFile);
  };
  save();
  return Object.assign(board, {
    // Written down before anybody can read it: a demo that is killed forgets nobody whom the database knows.
    arrive(count: number) {
      const times = Array.from({ length: count }, () => Date.now());
      added.push(...times);
      save();
      board.add(times.map((submittedAt) => ({ submittedAt })));
    },
  });
}

type Board = Sandbox & { arrive(count: number): void };

interface KeptBoard {
  readonly startedAt: number;
  readonly applications: number;
  readonly added: readonly number[];
}

function loadBoard(): KeptBoard | undefined {
  try {
    return JSON.parse(readFileSync(boardFile, 'utf8')) as KeptBoard;
  } catch {
    return undefined;
  }
}

type DemoConfig = Parameters<typeof import('../app.ts').syncOnce>[0];

async function showJobs({ terminal, signal }: Context, config: DemoConfig): Promise<void> {
  const { loadBusiestJobs } = await import('../app.ts');
  const jobs = await loadBusiestJobs(config, signal);
  const { default: Table } = await import('cli-table3');
  const table = new Table({
    head: ['job_reference', 'applications', 'job_seekers', 'last_application'],
    style: { head: [], border: [] },
  });
  for (const job of jobs) {
    table.push([
      job.job_reference ?? '(none)',
      String(job.applications),
      String(job.job_seekers),
      job.last_application?.toISOString().slice(0, 16) ?? '',
    ]);
  }
  terminal.result({ jobs }, () => `\nThe busiest jobs, from intake.applications:\n${table.toString()}`);
}

function toNextSteps(databaseUrl: string, once: boolean): string {
  const beside = [
    '  npm run intake -- status',
    '  npm run intake -- sync --recheck',
    '  npm run intake -- verify --full',
    `  psql '${databaseUrl}' -c 'SELECT * FROM intake.events ORDER BY event_id DESC LIMIT 10'`,
  ];
  if (once) return ['', 'What next: `npm run demo` goes on live, and these work beside it:', ...beside, ''].join('\n');
  return [
    '',
    'The demo goes on: people apply all the time, and a round reads them every few seconds. Ctrl-C ends it.',
    'Beside it, in another terminal, without any setting:',
    ...beside,
    '',
  ].join('\n');
}

/** Rounds until the person has seen enough. */
async function keepLive(context: Context, config: DemoConfig, board: Board): Promise<ExitCode> {
  const { signal, terminal } = context;
  const { syncOnce } = await import('../app.ts');
  while (!signal.aborted) {
    await sleep(betweenRoundsMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    board.arrive(1 + Math.floor(Math.random() * 4));
    const { advertisers, files } = await syncOnce(config, { recheck: false, files: true, signal }).catch(
      (error: unknown) => {
        if (signal.aborted) return { advertisers: [], files: null };
        throw error;
      },
    );
    const [outcome] = advertisers;
    if (outcome?.trouble)
      terminal.note(`${outcome.name}: ${outcome.trouble instanceof Error ? outcome.trouble.message : 'failed'}`);
    const added = outcome?.sweeps?.reduce((sum, one) => sum + one.added, 0) ?? 0;
    const stored = files && 'summary' in files ? files.summary.stored : 0;
    if (added > 0) {
      const at = new Date().toISOString().slice(11, 19);
      terminal.note(`${at}  ${added} new with ${stored} files, ${board.size} on the board`);
    }
  }
  return exitCodes.done;
}
