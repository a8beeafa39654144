// `intake demo`: the whole of Intake on one machine without an account: embedded Postgres, the sandbox, a first full round,
// a look at the rows, then live rounds until Ctrl-C. What it leaves in .intake/ lets the next demo go on where this one stopped.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from '../sandbox/server.ts';
import { type Context, command } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { reportOutcomes, showReading } from './reading.ts';

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
    const { openDemoSettings } = await import('../config/local.ts');
    const { loadConfig } = await import('../config.ts');
    terminal.note('Starting a sandbox job board and an embedded Postgres (kept in .intake/).');
    await using board = await openBoard(Number(options.applications) || 2_000);
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
      syncOnce(config, { ...events, recheck: false, signal: context.signal }),
    );
    const code = await reportOutcomes(context, outcomes);
    await showJobs(context, config);
    if (code !== exitCodes.done || options.once) return code;

    const { openPrefillServer } = await import('../app.ts');
    const { createLog } = await import('../log.ts');
    const log = await createLog({ level: 'warn', format: 'auto' });
    await using _routes = await openPrefillServer(config, { log, signal: context.signal });
    await using _site = openDemoSite(board, prefill);
    board.live(30);
    terminal.note(toNextSteps(database.url, prefill.siteUrl));
    return await keepLive(context, config, board);
  },
});

/** The board of this checkout: the same people and times as in the demo before, those who applied meanwhile included. */
async function openBoard(applications: number): Promise<Sandbox> {
  const { openSandbox } = await import('../sandbox/server.ts');
  const kept = loadBoard() ?? { startedAt: Date.now(), applications, added: [] };
  let now = () => kept.startedAt;
  const board = await openSandbox({ seed: 1, applications: kept.applications, now: () => now() });
  board.add(kept.added.map((submittedAt) => ({ submittedAt })));
  now = Date.now;
  const save = () => {
    const added = [...board.truth()].slice(kept.applications).map((one) => one.submittedAt);
    mkdirSync(stateDir, { recursive: true });
    writeFileSync(boardFile, JSON.stringify({ ...kept, added }));
  };
  save();
  const close = board[Symbol.asyncDispose].bind(board);
  return Object.assign(board, {
    async [Symbol.asyncDispose]() {
      save();
      await close();
    },
  });
}

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

function toNextSteps(databaseUrl: string, siteUrl: string): string {
  return [
    '',
    'The demo goes on: about thirty people apply every minute, and a round reads them every few seconds. Ctrl-C ends it.',
    'Beside it, in another terminal, without any setting:',
    '  npm run intake -- status',
    '  npm run intake -- sync --recheck',
    `  psql '${databaseUrl}' -c 'SELECT * FROM intake.events ORDER BY event_id DESC LIMIT 10'`,
    `A careers site with a button that fills in its form: ${siteUrl}/`,
    '',
  ].join('\n');
}

/** Rounds until the person has seen enough. */
async function keepLive(context: Context, config: DemoConfig, board: Sandbox): Promise<ExitCode> {
  const { signal, terminal } = context;
  const { syncOnce } = await import('../app.ts');
  while (!signal.aborted) {
    await sleep(betweenRoundsMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    const [outcome] = await syncOnce(config, { recheck: false, signal }).catch((error: unknown) => {
      if (signal.aborted) return [];
      throw error;
    });
    if (outcome?.trouble)
      terminal.note(`${outcome.name}: ${outcome.trouble instanceof Error ? outcome.trouble.message : 'failed'}`);
    const added = outcome?.sweeps?.reduce((sum, one) => sum + one.added, 0) ?? 0;
    if (added > 0) terminal.note(`${new Date().toISOString().slice(11, 19)}  ${added} new, ${board.size} on the board`);
  }
  return exitCodes.done;
}
