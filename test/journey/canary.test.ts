// @module-tag slow
// Unique markers go in as credential, names, addresses, phone numbers, file names and answers, through a journey with faults at log level
// trace, by commands and by a worker. Afterwards they are looked for everywhere: they may be where they belong, and nowhere else (P18). A
// listener on a foreign origin is asked for nothing, whatever Href and redirects say (P19). What strangers ask the ports for is the subject
// of test/integration/ports.test.ts, a candidate's secrets are that of prefill.test.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { callIntake, startIntake } from '../support/processes/intake.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { isRead, spawnWorker } from '../support/processes/worker.ts';
import { listenLocally } from '../support/servers/local-server.ts';
import { openScratch } from '../support/stores/blob-stores.ts';
import { until } from '../support/suite/until.ts';

const credential = 'canary-credential-5f1c';
/** What is known of the person, and the columns that may hold it; `raw` is the source's object, whole. */
const canaries: Readonly<Record<string, readonly string[]>> = {
  'canary.mail@example.com': ['applications.email', 'applications.raw'],
  Canaryfirst: ['applications.first_name', 'applications.raw'],
  Canarylast: ['applications.last_name', 'applications.raw'],
  '+61491570006': ['applications.phone', 'applications.raw'],
  'canary-file-name.pdf': ['attachments.file_name'],
  'Canary Title': ['applications.raw', 'primary_job_seeking_info.job_title'],
  'canary answer text': ['screen_answers.text'],
  'canary quarantined': ['quarantine.raw'],
};

describe('a journey with faults at log level trace', () => {
  test('leaves every marker where it belongs and nowhere else', async ({ database }) => {
    await using foreign = await openForeign();
    await using scratch = await openScratch();
    await using board = await openCanaryBoard(foreign.url);
    const blobsFolder = join(scratch.path, 'blobs');
    const env = {
      ...toEnvironment(database, board, blobsFolder),
      LOG_LEVEL: 'trace',
      LOG_FORMAT: 'json',
      TMPDIR: scratch.path,
    };
    const said: string[] = [];
    const seenArguments: string[] = [];
    const run = async (...args: string[]) => {
      const running = startIntake(args, env, scratch.path);
      seenArguments.push(...loadArguments(running.child.pid));
      const { stdout, stderr, code } = await running.ended;
      said.push(stdout, stderr);
      return code;
    };
    const watched = await watchWorker(database, board, { ...env, SOURCE_TIMEOUT: '1s' });
    said.push(...watched.said);
    seenArguments.push(...watched.arguments);
    board.clearFaults();
    await run('retry');
    expect(await run('sync', '--recheck', '--json')).toBe(0);
    for (const line of ['doctor', 'verify --full']) await run(...line.split(' '));
    // These two open no log: what they say is all there is.
    const told = [
      await callIntake(['status', '--json'], env),
      await callIntake(['backfill', '--from', 'Canaryfirst'], env),
    ];
    expect(told.map(({ code }) => code)).toEqual([0, 2]);
    said.push(...told.flatMap(({ stdout, stderr }) => [stdout, stderr]));

    // An argument that a person typed, Canaryfirst, is repeated to nobody either.
    const markers = [...Object.keys(canaries), credential];
    for (const marker of markers) {
      expect(said.filter((text) => text.includes(marker)).length, `${marker} was said`).toBe(0);
      expect(seenArguments.join(' ')).not.toContain(marker);
    }
    expect(await findPlaces(database, markers)).toEqual(canaries);
    expect(readdirSync(scratch.path).filter((name) => name.startsWith('intake-spool'))).toEqual([]);
    // Named by a digest: no file name in a path of the store.
    const files = readdirSync(blobsFolder, { recursive: true }).join('\n');
    expect(files).not.toMatch(/canary/i);

    // Not only no credential: another origin is never asked at all.
    expect(foreign.requests).toEqual([]);
  });
});

/** A board with one marked person, a poisoned element, and every way to send a client elsewhere. */
async function openCanaryBoard(foreignUrl: string): Promise<Sandbox> {
  const board = await openSandbox({
    applications: 6,
    credential,
    choices: { href: 'foreign', disposition: 'extended' },
  });
  board.add([
    {
      email: 'canary.mail@example.com',
      firstName: 'Canaryfirst',
      lastName: 'Canarylast',
      phone: '+61491570006',
      jobSeekingInfo: { jobTitle: 'Canary Title', companyName: null, timeInRoleMonths: 4, isNewToWorkforce: false },
      attachments: [
        { kind: 'resume', fileName: 'canary-file-name.pdf', raw: { Href: JSON.stringify(`${foreignUrl}/resume`) } },
        { kind: 'coverLetter', raw: { Href: JSON.stringify(foreignUrl.replace('http:', '')) } },
        { kind: 'screen' },
      ],
      screens: [
        {
          id: '1',
          name: 'Screen',
          successful: true,
          questions: [
            { id: '1', type: 'Text', text: 'Why?', answers: [{ id: '1', text: 'canary answer text', selected: true }] },
          ],
        },
      ],
    },
  ]);
  board.fault({ kind: 'poison', on: 'list', json: '{"ID": null, "Email": "canary quarantined"}', times: null });
  board.fault({ kind: 'redirect', on: 'list', status: 302, location: `${foreignUrl}/list` });
  board.fault({ kind: 'redirect', on: 'resume', status: 307, location: `${foreignUrl}/resume`, times: 3 });
  board.fault({
    kind: 'redirect',
    on: 'coverLetter',
    status: 301,
    location: foreignUrl.replace('http:', ''),
    times: 2,
  });
  board.fault({ kind: 'reset', on: 'list', at: 'body', skip: 1 });
  board.fault({ kind: 'cut', on: 'attachments', framing: 'contentLength', times: 2, skip: 3 });
  board.fault({ kind: 'html', on: 'screen' });
  board.fault({ kind: 'fail', on: 'attachments', status: 500, skip: 6, times: 2 });
  return board;
}

/** Somebody else's server: answers everything, and remembers what was asked. */
async function openForeign() {
  const requests: { headers: Record<string, unknown> }[] = [];
  const server = createServer((request, response) => {
    requests.push({ headers: { ...request.headers, url: request.url } });
    response.end('{"JobApplications": {"AdvertiserID": 20000001, "JobApplicationsList": []}}');
  });
  return { ...(await listenLocally(server)), requests };
}

/** What `ps` shows of a running process. */
function loadArguments(pid: number | undefined): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** A worker through the faults; returns all that it ever said, on its pages too, and its arguments. */
async function watchWorker(database: TestDatabase, board: Sandbox, env: Record<string, string>) {
  await using worker = await spawnWorker({ ...env, SYNC_SCHEDULE: '* * * * * *' });
  await until(() => isRead(database, board));
  // By then files have come, failed and been read, the screen of the marked person among them.
  await until(async () => (await database.query(`SELECT 1 FROM intake.screen_answers`)).length > 0);
  const load = async (path: string) => await (await fetch(`${worker.adminUrl}${path}`)).text();
  const pages = await Promise.all(['/', '/metrics', '/api/status', '/livez', '/readyz'].map(load));
  const seen = loadArguments(worker.pid);
  expect(seen).toContain('worker');
  worker.kill('SIGTERM');
  const { code, stdout, stderr } = await worker.ended;
  expect(code).toBe(0);
  return { said: [...pages, stdout, stderr], arguments: seen };
}

/** In which columns of which tables a marker stands. */
async function findPlaces(database: TestDatabase, markers: readonly string[]): Promise<Record<string, string[]>> {
  const columns = await database.query<{ place: string; sql: string }>(
    `SELECT table_name || '.' || column_name AS place,
       format('SELECT count(*)::int AS n FROM intake.%I WHERE position($1 IN %I::text) > 0', table_name, column_name) AS sql
     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_schema = 'intake' AND table_type = 'BASE TABLE' ORDER BY table_name, column_name`,
  );
  const found: Record<string, string[]> = {};
  for (const marker of markers) {
    for (const { place, sql } of columns) {
      const [row] = await database.query<{ n: number }>(sql, [marker]);
      if (row && row.n > 0) found[marker] = [...(found[marker] ?? []), place];
    }
  }
  return found;
}
