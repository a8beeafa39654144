// `intake demo`: the whole of Intake on one machine without an account: embedded Postgres, the sandbox, a first full sync,
// a table of the busiest ads, then a live worker until Ctrl-C. It keeps its state in .intake/demo, and the next demo continues from there.
// Its board, its ports and what runs beside it are in src/dev/demo, which the production image does not have.
import { join } from 'node:path';
import type { WorkerConfig } from '../../app/worker.ts';
import { formatCount } from '../../domain/format.ts';
import { type Context, command, flag } from '../command.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';
import { runAndReport } from '../read-report.ts';
import { loadDevelopment } from './sandbox.ts';
import { untilEnded } from './serve.ts';

export const demo = command({
  name: 'demo',
  summary: 'try everything on this machine: embedded Postgres, a sandbox job board, a live worker',
  examples: [
    ['intake demo', 'fill a database and keep it up to date until Ctrl-C; other commands work beside it'],
    ['intake demo --once', 'exit after the first full sync'],
  ],
  options: { once: flag('exit after the first full sync') },
  async run(context, { once }) {
    const { terminal } = context;
    const { checkoutStateDir, findRunningDemo, saveDemoSettings } = await import('../../config/local.ts');
    const running = findRunningDemo(checkoutStateDir);
    if (running !== null) {
      const next = 'Run other commands beside it, or stop it with Ctrl-C; another checkout can run its own.';
      throw new Failure(exitCodes.held, `A demo already runs in this checkout (process ${running}).`, next);
    }
    const { openBoard, startArrivals } = await loadDevelopment('demo', () => import('../../dev/demo/board.ts'));
    const { findDemoPorts } = await import('../../dev/demo/ports.ts');
    terminal.note('Starting a sandbox job board and an embedded Postgres (kept in .intake/demo/).');
    const ports = await findDemoPorts((text) => terminal.note(text));
    const stateDir = join(checkoutStateDir, 'demo');
    await using board = await openBoard({ stateDir, applications: 2_000, port: ports.sandbox });
    const { createBeside } = await import('../../dev/demo/beside.ts');
    const beside = createBeside(board, ports);
    const env = {
      ...beside.env,
      ADMIN_PORT: String(ports.statusPage),
      SYNC_SCHEDULE: '*/5 * * * * *',
      SOURCE_URL: board.url,
      SOURCE_CREDENTIAL: board.credential,
      SOURCE_RATE: 'off',
      DATABASE_URL: 'embedded',
    };
    saveDemoSettings(env, checkoutStateDir);
    const needs = ['database', 'source', 'sync', 'blobs', 'admin', 'privacy', 'webhooks', 'extract'] as const;
    const config = await loadCommandConfig({ ...env, NODE_ENV: 'development' }, needs, undefined, true);
    // Held open until the end, so that the database does not stop between the first sync and the worker.
    const { syncOnce } = await import('../../app.ts');
    const { openPlace } = await import('../../app/database.ts');
    const { currentUrl } = await import('../../store/postgres/connection.ts');
    await using database = await openPlace(config);
    const databaseUrl = currentUrl(database.url);
    const code = await runAndReport(context, (events) => syncOnce(config, { ...events, recheck: false, files: true }));
    await showAds(context, databaseUrl);
    terminal.note(toNextSteps(databaseUrl, once));
    if (code !== exitCodes.done || once) return code;

    await using _beside = beside.open(context.env);
    terminal.note(`A sample careers site whose form can be prefilled: ${beside.siteUrl}/`);
    terminal.note(`A sample receiver of webhooks, which shows events as they come: ${beside.receiverUrl}/`);
    using _arrivals = startArrivals(board);
    return await keepLive(context, config, () => board.size);
  },
});

async function showAds({ terminal }: Context, url: string): Promise<void> {
  const { loadBusiestAds } = await import('../../dev/demo/busiest-ads.ts');
  const { renderTable } = await import('../render-status.ts');
  const ads = await loadBusiestAds(url);
  const head = ['job_reference', 'applications', 'job_seekers', 'last_application'];
  const rows = ads.map(({ job_reference, applications, job_seekers, last_application }) => {
    const last = last_application?.toISOString().slice(0, 16) ?? '';
    return [job_reference ?? '(none)', `${applications}`, `${job_seekers}`, last];
  });
  terminal.result({ ads }, () => `\nThe busiest ads, from intake.applications:\n${renderTable(head, rows)}`);
}

function toNextSteps(databaseUrl: string, once: boolean): string {
  const run = '  npm run intake --';
  const common = [`${run} status`, `${run} prove`];
  const ended = '`npm run demo` keeps a worker running. These show what was stored, and work beside it:';
  // The server stops with this demo, and the next one may use another port: no psql.
  if (once) return ['', ended, ...common, ''].join('\n');
  return [
    '\nThe demo keeps running: people keep applying, and a worker polls every five seconds. Ctrl-C stops it.',
    'Try these in another terminal; they need no settings:',
    ...[...common, `${run} sync --recheck`, `${run} verify --full`, `${run} webhook list`],
    `  psql '${databaseUrl}' -c 'SELECT * FROM intake.events ORDER BY event_id DESC LIMIT 10'\n`,
  ].join('\n');
}

async function keepLive({ signal, terminal }: Context, config: WorkerConfig, toSize: () => number): Promise<ExitCode> {
  const { createLog } = await import('../../log.ts');
  const { runWorker } = await import('../../app/worker.ts');
  const log = await createLog({ level: 'warn', format: 'auto' });
  const tell = (text: string) => terminal.note(`${new Date().toISOString().slice(11, 19)}  ${text}`);
  const running = runWorker(config, {
    ...{ log, signal },
    onOpen: (url) => terminal.note(`The worker's status page: ${url}/\n`),
    onPass({ added = 0, files }) {
      if (added > 0) tell(`${added} new, ${toSize()} on the board`);
      if (files?.stored) tell(formatCount(files.stored, 'file'));
    },
  });
  await untilEnded(running, signal);
  return exitCodes.done;
}
