// @module-tag slow
// Unique markers go in as credential, secrets, names, addresses, phone numbers, file names and answers, through a journey with faults at
// log level trace, by commands and by a worker with both ports open. Afterwards they are looked for everywhere: they may be where they
// belong, and nowhere else (P18). A listener on a foreign origin hears no credential, whatever Href and redirects say (P19).
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { openScratch } from '../support/blob-stores.ts';
import { createBrowser } from '../support/candidate-browser.ts';
import { callIntake, startIntake } from '../support/intake.ts';
import { careers, openPrefillStage, prefillKey, sessionSecret } from '../support/prefill-stage.ts';
import { toEnvironment } from '../support/syncing.ts';
import { type TestDatabase, test } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { isRead, spawnPrefill, spawnWorker } from '../support/worker.ts';

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
    const watched = await watchWorker(
      database,
      board,
      { ...env, ...toPrefillSettings(board), SOURCE_TIMEOUT: '1s' },
      scratch.path,
    );
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
    const stage = await playPrefill(database, `file:${blobsFolder}`);
    said.push(stage.logged);

    const personal = [...Object.keys(canaries), ...stage.personal];
    const secrets = [credential, 'canary-client-secret', ...stage.secrets, ...asked];
    for (const marker of [...personal.filter((one) => one !== 'Canaryfirst'), ...secrets]) {
      expect(said.filter((text) => text.includes(marker)).length, `${marker} was said`).toBe(0);
    }
    // An argument that a person typed is repeated to nobody either.
    expect(said.filter((text) => text.includes('Canaryfirst'))).toEqual([]);
    for (const marker of [...personal, ...secrets]) expect(seenArguments.join(' ')).not.toContain(marker);

    const places = await findPlaces(database, [...Object.keys(canaries), ...secrets]);
    expect(places).toEqual(canaries);
    expect(findSpooled(scratch.path)).toEqual([]);
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What `ps` shows of a running process. */
function loadArguments(pid: number | undefined): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** What strangers ask both ports for; it must come back to nobody, and reach no log. */
const asked = [
  'canary-path',
  'canary-query',
  'canary-host',
  'canary-code',
  'canary-state',
  'canary-login',
  'canary-body',
];
const adminPaths = ['/', '/?period=30d', '/metrics', '/api/status', '/livez', '/readyz'];
const strangePaths = ['/canary-path?q=canary-query', '/%ff/canary-path', '//canary-path'];
const publicPaths = [
  '/prefill/start?return_url=https://canary-query.example.com/',
  '/prefill/callback?code=canary-code&state=20000001.canary-state',
  '/prefill/resume/canary-path',
  '/prefill/canary-path',
];

/** A worker through the faults, asked by scrapers, people and strangers, with its database and without; answers all that it ever said. */
async function watchWorker(
  database: TestDatabase,
  board: Sandbox,
  env: Record<string, string>,
  folder: string,
): Promise<{ readonly said: readonly string[]; readonly arguments: readonly string[] }> {
  await using worker = await spawnWorker({ ...env, SYNC_SCHEDULE: '* * * * * *' });
  await until(() => isRead(database, board));
  await using prefill = await spawnPrefill(env);
  // By then files have come, failed and been read, the screen of the marked person among them.
  await until(async () => (await database.query(`SELECT 1 FROM intake.screen_answers`)).length > 0);
  const said: string[] = [];
  const look = async () => {
    const admin = [...adminPaths, ...strangePaths].map((path) => ask(worker.adminUrl, path));
    const open = [...publicPaths, ...strangePaths].map((path) => ask(prefill.url, path));
    const strange = [worker.adminUrl, prefill.url].flatMap((url) => [
      ask(url, '/', { headers: { host: 'canary-host.example.com' } }),
      ask(url, '/prefill/redeem', {
        method: 'POST',
        headers: { authorization: 'Bearer canary-login' },
        body: 'canary-body',
      }),
      ask(url, '/canary-path', { method: 'PUT', body: 'canary-body' }),
      ask(url, '/canary-path', { method: 'HEAD' }),
    ]);
    const answers = await Promise.all([...admin, ...open, ...strange]);
    said.push(...answers.map(({ head, body }) => `${head}\n${body}`));
    return new Set(answers.map(({ status }) => status));
  };
  expect([...(await look())].sort()).toEqual([200, 303, 400, 401, 404, 405, 410, 421]);
  expect(findSpooled(folder)).toEqual([]);
  await database.query(`ALTER TABLE intake.advertisers RENAME TO away`);
  await until(async () => (await look()).has(503) && worker.lines.some((line) => line.includes('42P01')));
  await database.query(`ALTER TABLE intake.away RENAME TO advertisers`);
  const seen = [worker, prefill].flatMap(({ pid }) => loadArguments(pid));
  expect(seen).toEqual(expect.arrayContaining(['worker', 'prefill']));
  for (const one of [worker, prefill]) one.kill('SIGTERM');
  const ended = await Promise.all([worker.ended, prefill.ended]);
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  return { said: [...said, ...ended.flatMap(({ stdout, stderr }) => [stdout, stderr])], arguments: seen };
}

function toPrefillSettings(board: Sandbox): Record<string, string> {
  return {
    PORT: '0',
    AUTH_URL: board.url,
    OAUTH_CLIENT_ID: board.client.clientId,
    OAUTH_CLIENT_SECRET: 'canary-client-secret',
    OAUTH_REDIRECT_URI: 'http://127.0.0.1:8080/prefill/callback',
    PREFILL_RETURN_URLS: careers,
    PREFILL_KEY: prefillKey,
    SESSION_SECRET: sessionSecret,
  };
}

/** Files that have a name in the spool. */
function findSpooled(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith('intake-spool'));
}

interface Asking {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** An answer whole: a line of status, the headers, the body. */
function ask(url: string, path: string, { method = 'GET', headers = {}, body = '' }: Asking = {}) {
  return new Promise<{ status: number; head: string; body: string }>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path, method, headers, agent: false }, async (answer) => {
      const { statusCode: status = 0, statusMessage, rawHeaders } = answer;
      resolve({ status, head: [statusMessage, ...rawHeaders].join(' '), body: await text(answer) });
    })
      .once('error', reject)
      .end(body);
  });
}

/** A candidate's way, once well and once with a failing token; answers what must not be found, and what was logged and shown. */
async function playPrefill(database: TestDatabase, blobsUrl: string) {
  await using stage = await openPrefillStage(database, {
    client: { clientSecret: 'canary-client-secret' },
    env: { BLOBS_URL: blobsUrl },
  });
  const browser = createBrowser();
  const callback = await browser.toCallback(stage.toStartUrl());
  const back = new URL(await browser.step(callback));
  stage.sandbox.fault({ kind: 'fail', on: 'token', status: 500, times: 4 });
  await createBrowser().toReturn(stage.toStartUrl());
  const pages = [
    await (await browser.go(callback)).text(),
    await (await createBrowser().go(callback)).text(),
    await (await browser.go(stage.toStartUrl({ return_url: 'https://elsewhere.example.com/' }))).text(),
    await (await stage.redeem('no-such-handle')).text(),
  ];
  const [grant] = stage.sandbox.grants();
  const person = grant?.candidate.person;
  const state = new URL(callback).searchParams.get('state') ?? '';
  expect(back.href.startsWith(careers)).toBe(true);
  return {
    logged: [stage.logged(), ...pages].join('\n'),
    secrets: [prefillKey, sessionSecret, grant?.code ?? '', grant?.token ?? '', state].filter(Boolean),
    personal: [person?.lastName ?? '', person?.email ?? '', person?.phone ?? ''].filter(Boolean),
  };
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
