// The configuration as an operator meets it: what is read, what is refused, and that no secret ever comes back in a message.

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toLimits } from '../../src/app/database.ts';
import { saveDemoSettings, toStateDir } from '../../src/config/local.ts';
import { type Setting, sections, settings, toExample } from '../../src/config/settings.ts';
import { type ConfigProblem, ConfigProblems, loadConfig, type Need, toWebhookSecrets } from '../../src/config.ts';

const all = Object.keys(sections).filter((name) => name !== 'process') as Need[];
const account = { SOURCE_URL: 'https://api.example.com', SOURCE_CREDENTIAL: 'sesame' };
const ofAccount = Object.keys(account);
const production = {
  ...account,
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://intake:pw@db/intake',
  BLOBS_URL: 's3://bucket/prefix',
  PRIVACY_KEY: 'privacy-pw, a long one',
};
const prefill = {
  AUTH_URL: 'https://auth.example.com/',
  OAUTH_CLIENT_ID: 'client',
  OAUTH_CLIENT_SECRET: 'p%ss:wörd',
  OAUTH_REDIRECT_URI: 'https://intake.example.com/prefill/callback',
  PREFILL_RETURN_URLS: 'https://careers.example.com, https://jobs.example.com/apply/',
  PREFILL_KEY: 'redeem-pw-that-is-long',
  SESSION_SECRET: 'cookie-pw, a long one',
};
/** What the sites of several accounts have in common. */
const { PREFILL_KEY: _key, PREFILL_RETURN_URLS: _urls, ...client } = prefill;

const whsec = (word: string) => `whsec_${Buffer.from(word.padEnd(24, '.')).toString('base64')}`;
const hook = { url: 'https://ats.example.com/hook?token=1', secret: whsec('a secret') };
const webhook = { WEBHOOK_URL: hook.url, WEBHOOK_SECRET: hook.secret };

const lake = { ...account, EXTRACT_URL: 's3://lake/intake' };

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'config-'));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

type Env = Record<string, string | undefined>;
const load = <N extends Need>(env: Env, ...needs: N[]) => loadConfig(env, { needs, stateDir });

function refuse(env: Env, ...needs: Need[]): readonly ConfigProblem[] {
  try {
    load(env, ...(needs.length > 0 ? needs : all));
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
  return [];
}

const refusedNames = (env: Env, ...needs: Need[]) => refuse(env, ...needs).map(({ name }) => name);

/** Writes a list of accounts, and gives the settings that name it. */
const listed = (accounts: unknown): Env => {
  const file = join(stateDir, 'advertisers.json');
  writeFileSync(file, typeof accounts === 'string' ? accounts : JSON.stringify(accounts));
  return { ADVERTISERS_FILE: file, SOURCE_URL: 'https://api.example.com' };
};

const inDatabase = (query: string, more: Env = {}): Env => ({
  ...account,
  DATABASE_URL: `postgres://db/d${query}`,
  ...more,
});
const shortSecrets = {
  ...{ ...prefill, PREFILL_KEY: 'x', SESSION_SECRET: 'x'.repeat(15) },
  ...{ ADMIN_USER: 'a', ADMIN_PASSWORD: 'x'.repeat(15) },
};

describe('settings that depend on each other', () => {
  const login = ['ADMIN_USER', 'ADMIN_PASSWORD'];
  const each = (name: string, values: readonly (string | undefined)[], refused = [name], others: Env = account) =>
    values.map((value): [string, Env, string[]] => [`${name}=${value}`, { ...others, [name]: value }, refused]);
  it.each<[what: string, env: Env, refused: readonly string[]]>([
    ['production needs more', { ...account, NODE_ENV: 'production' }, ['DATABASE_URL', 'BLOBS_URL', 'PRIVACY_KEY']],
    ['production does not start a database', { ...production, DATABASE_URL: 'embedded' }, ['DATABASE_URL']],
    ['a misspelt production is not development', { ...account, NODE_ENV: 'prod' }, ['NODE_ENV']],
    [
      'production in blanks is production',
      { ...account, NODE_ENV: ' production ', BLOBS_URL: 's3://bucket', PRIVACY_KEY: 'x'.repeat(16) },
      ['DATABASE_URL'],
    ],
    ['verify-ca needs a root certificate', inDatabase('?sslmode=verify-ca'), ['DATABASE_URL']],
    ['the public authorities are none', inDatabase('?sslmode=verify-ca&sslrootcert=system'), ['DATABASE_URL']],
    ['nor do they serve less', inDatabase('?sslmode=require&sslrootcert=system'), ['DATABASE_URL']],
    ['TLS is used or not', inDatabase('?sslmode=prefer'), ['DATABASE_URL']],
    ['an empty root certificate is none', inDatabase('?sslmode=verify-ca&sslrootcert='), ['DATABASE_URL']],
    ['the driver does not know PGSSLMODE as psql does', { ...production, PGSSLMODE: 'require' }, ['DATABASE_URL']],
    ['it agrees with the address', inDatabase('?sslmode=require', { PGSSLMODE: 'require' }), []],
    [
      'a socket has no TLS',
      inDatabase('?host=/tmp', { DATABASE_URL: 'postgres://u@/d?host=/tmp', PGSSLMODE: 'require' }),
      [],
    ],
    ['an empty PGSSLMODE is none', { ...production, PGSSLMODE: '' }, []],
    ['a login is whole', { ...account, ADMIN_USER: 'a' }, ['ADMIN_PASSWORD']],
    ['short secrets', { ...production, ...shortSecrets }, ['ADMIN_PASSWORD', 'PREFILL_KEY', 'SESSION_SECRET']],
    ['short secrets in development', { ...account, ...shortSecrets }, []],
    ['sixteen characters', { ...production, ADMIN_USER: 'a', ADMIN_PASSWORD: 'x'.repeat(16) }, []],
    ['sixteen with their =', { ...production, ...prefill, PREFILL_KEY: `${'x'.repeat(15)}=` }, []],
    ['a webhook has a secret', { ...account, WEBHOOK_URL: webhook.WEBHOOK_URL }, ['WEBHOOK_SECRET']],
    ['a secret has a webhook', { ...account, WEBHOOK_SECRET: webhook.WEBHOOK_SECRET }, ['WEBHOOK_URL']],
    ['a privacy key cannot be guessed', { ...account, PRIVACY_KEY: 'x'.repeat(15) }, ['PRIVACY_KEY']],
    ['nor is it blanks', { ...account, PRIVACY_KEY: `x${' '.repeat(20)}` }, ['PRIVACY_KEY']],
    ...each('ADMIN_HOST', ['127.0.0.1', '127.1.2.3', '::1', 'localhost'], []),
    ...each('ADMIN_HOST', ['0.0.0.0', '::', '10.0.0.1', 'localhost.example.com', '127.0.0.1.example.com'], login),
    ...each('TRUSTED_PROXIES', ['everybody', '10.0.0.0/33', '10.0.0', '10.0.0.1/', '1.2.3.4,', 'fd00::/129']),
    ...Object.keys(prefill).flatMap((name) => each(name, [undefined], [name], { ...account, ...prefill })),
  ])('%s', (_, env, refused) => {
    expect(refusedNames(env)).toEqual(refused);
  });

  const clear = /^DATABASE_URL .*in the clear.*sslmode=verify-full/;
  const toDatabase = (url: string, more: Env = {}) => ({ ...production, DATABASE_URL: url, ...more });
  const local = (more: Env) => toDatabase('postgres://localhost/d', more);
  it.each<[what: string, env: Env, warning: RegExp | null]>([
    ...['', '?sslmode=disable', '?sslrootcert='].map((query): [string, Env, RegExp] => [
      `a database beyond this machine without TLS or without proof of it (${query})`,
      toDatabase(`postgres://db/d${query}`),
      clear,
    ]),
    ...[
      ...['127.0.0.1/d', '[::1]:5432/d', 'u@/d?host=/tmp', '%2Ftmp/d', '/d', 'db/d?sslmode=require'],
      ...['db/d?sslmode=verify-full', 'db/d?sslrootcert=system', 'db/d?ssl=true'],
    ].map((rest): [string, Env, null] => [`postgres://${rest}`, toDatabase(`postgres://${rest}`), null]),
    [
      'a direct address',
      toDatabase('postgres://localhost/d', { DATABASE_DIRECT_URL: 'postgres://db/d' }),
      /^DATABASE_DIRECT/,
    ],
    ['not in development', inDatabase(''), null],
    ['a source in the clear', local({ SOURCE_URL: 'http://gateway.internal' }), /^SOURCE_URL is http/],
    ['a source on this machine', local({ SOURCE_URL: 'http://[::1]:8080' }), null],
    ['a source in the clear, in development', { ...account, SOURCE_URL: 'http://gateway.internal' }, null],
    ['a webhook', local({ ...webhook, WEBHOOK_URL: 'http://a.example/' }), /^WEBHOOK_URL is http/],
  ])('warns: %s', (_, env, warning) => {
    expect(load(env, ...all).warnings).toEqual(warning ? [expect.stringMatching(warning)] : []);
  });

  it.each([
    ['DATABASE_CA', '/root.crt', 'database', 'name the certificate with sslrootcert in DATABASE_URL'],
    ['DATABASE_AUTH', 'rds-iam', 'database', /^is not read any more: write a token into the file of DATABASE_URL_FILE/],
    ['S3_KMS_KEY_ID', 'alias/a', 'blobs', "let the bucket's default encryption name the key, with S3_SSE=off"],
  ] as const)('%s is gone, and says what took its place', (name, value, need, instead) => {
    expect(refuse({ ...account, [name]: value }, need)).toEqual([
      { name, text: expect.stringMatching(instead), example: `${name}=` },
    ]);
    expect(refuse({ ...account, [name]: ' ' }, need)).toEqual([]);
    expect(refuse({ ...account, [name]: value }, 'privacy')).toEqual([]);
  });

  it('nobody is a trusted proxy unless named, by address or network', () => {
    const isTrusted = (setting: string | undefined, address: string) =>
      load({ TRUSTED_PROXIES: setting }).trustedProxies.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
    const named = '192.0.2.7, 10.0.0.0/8,fd00::/8';
    expect(isTrusted(undefined, '127.0.0.1')).toBe(false);
    expect(['192.0.2.7', '192.0.2.8', '10.1.2.3', 'fd00::1'].map((address) => isTrusted(named, address))).toEqual([
      ...[true, false, true, true],
    ]);
  });

  it('prefill is set whole or not at all', () => {
    expect(load({ PORT: '80', PREFILL_TTL: '1h' }, 'prefill').prefill).toBeNull();
    expect(load({ ...account, ...prefill }, 'prefill').prefill).toMatchObject({
      PREFILL_TTL: 86_400_000,
      AUTH_URL: 'https://auth.example.com',
    });
  });
});

describe('defaults', () => {
  it('outside production an account is all that is needed', () => {
    const config = load(account, ...all);
    expect(config).toMatchObject({
      ...{ warnings: [], prefill: null, privacy: { RETENTION: null } },
      source: { advertisers: [{ name: 'default', url: 'https://api.example.com', advertiserId: null }] },
      sync: { SYNC_SCHEDULE: '*/5 * * * *', RECHECK_SCHEDULE: '17 3 * * *' },
      blobs: { BLOBS_URL: { kind: 'disk', path: join(stateDir, 'blobs') } },
      admin: { ADMIN_HOST: '127.0.0.1', ADMIN_PORT: 9090, ADMIN_USER: null, ADMIN_PASSWORD: null },
    });
    expect(config.database.DATABASE_URL.reveal()).toBe('embedded');
    expect(toLimits(config)).toEqual({
      ...{ staleAfterMs: 1_200_000, verifyWithinMs: 30 * 86_400_000 },
      ...{ proofLimitMs: 2 * 86_400_000, extract: null },
    });
    expect(config.source.advertisers[0]?.credential.reveal()).toBe('sesame');
  });

  it('polls, rechecks and extracts that are off have no time limit, or a long one', () => {
    const limits = (more: Env) => toLimits(load({ ...account, ...more }, 'sync', 'extract'));
    expect(limits({ SYNC_SCHEDULE: 'off' }).staleAfterMs).toBeNull();
    const off = { RECHECK_SCHEDULE: 'off' };
    expect(limits(off).proofLimitMs).toBe(14 * 86_400_000);
    expect(limits({ ...off, RECHECK_WITHIN: '30d' }).proofLimitMs).toBe(30 * 86_400_000);
    const nightly = limits({ ...lake, EXTRACT_SCHEDULE: '41 2 * * *' });
    expect(nightly.extract).toEqual({ location: 's3://lake/intake', withinMs: 2 * 86_400_000 });
  });

  it('several hosts are refused with the way that there is', () => {
    const [problem] = refuse({ ...account, DATABASE_URL: 'postgres://h1:1,h2:2/d' }, 'database');
    expect(problem?.text).toMatch(/several hosts.*one address.*primary/);
  });

  it('every default and every example is accepted by its own reader', () => {
    for (const [name, setting] of settings) {
      for (const text of [setting.default, setting.developmentDefault, toExample(setting)]) {
        if (text !== undefined) expect(setting.read.safeParse(text).success, `${name}=${text}`).toBe(true);
      }
    }
  });

  it.each(['', '  '])('an empty text counts as not set (%j)', (empty) => {
    const env = { ...account, SOURCE_RATE: empty, DATABASE_URL: '', ADVERTISERS_FILE: empty };
    const { database, source } = load(env, 'source', 'database');
    expect(database.DATABASE_URL.reveal()).toBe('embedded');
    expect(source.SOURCE_RATE).toBe(10);
    expect(refusedNames({ SOURCE_URL: empty, SOURCE_CREDENTIAL: '' }, 'source')).toEqual(ofAccount);
  });
});

const values: [name: string, text: string, value: unknown][] = [
  ['SYNC_LAG', '1.5h', 5_400_000],
  ['LEASE', '500ms', 500],
  ['RETENTION', '365d', 31_536_000_000],
  ['RETENTION', 'off', null],
  ['ATTACHMENT_MAX_BYTES', '8MiB', 8_388_608],
  ['ATTACHMENT_MAX_BYTES', '1.5 GiB', 1_610_612_736],
  ['ATTACHMENT_MAX_BYTES', '1024', 1024],
  ['SOURCE_RATE', '600/m', 10],
  ['SOURCE_RATE', '36/h', 0.01],
  ['SOURCE_RATE', '0.5/s', 0.5],
  ['SOURCE_RATE', 'off', null],
  ['SYNC_SCHEDULE', '*/10 * * * * *', '*/10 * * * * *'],
  ['SYNC_START', 'all', null],
  ['SYNC_START', '2026-07-01', Date.UTC(2026, 5, 30, 14)],
  ['SYNC_START', '2026-07-01T09:00:00Z', Date.UTC(2026, 6, 1, 9)],
  ['SOURCE_URL', 'https://api.example.com/', 'https://api.example.com'],
  ['SOURCE_URL', 'https://gateway.example.com/v1beta', 'https://gateway.example.com/v1beta'],
  ['ADVERTISER_ID', '9007199254740993', 9_007_199_254_740_993n],
  ['BLOBS_URL', 'file:/var/lib/intake', { kind: 'disk', path: '/var/lib/intake' }],
  ['BLOBS_URL', 'file:///var/lib/intake', { kind: 'disk', path: '/var/lib/intake' }],
  ['BLOBS_URL', 's3://bucket/a/b/', { kind: 's3', bucket: 'bucket', prefix: 'a/b' }],
  ['S3_FORCE_PATH_STYLE', 'true', true],
  ['PREFILL_RETURN_URLS', 'https://a.example,https://b.example/x', ['https://a.example/', 'https://b.example/x']],
  ['DATABASE_URL', 'postgresql://u:p%23ss@h:5432/d?sslmode=require', 'postgresql://u:p%23ss@h:5432/d?sslmode=require'],
  ['DATABASE_URL', 'postgres:///d?host=/var/run/postgresql', 'postgres:///d?host=/var/run/postgresql'],
  ['DATABASE_URL', 'postgres://u@/d?host=/tmp', 'postgres://u@/d?host=/tmp'],
  ['DATABASE_URL', 'postgres://u@%2Ftmp:5433/d', 'postgres://u@%2Ftmp:5433/d'],
];

it.each(values)('%s reads %s', (name, text, value) => {
  expect(settings.get(name)?.read.parse(text)).toEqual(value);
});

const refusals: [name: string, ...texts: string[]][] = [
  ['VERIFY_WITHIN', '47h', '1d', 'off', '30', '36501d'],
  ['SYNC_LAG', '15', '15 minutes', '-5m', '0s', 'off', '1e3s', '15M', '36501d', `${'9'.repeat(400)}ms`],
  // Timers of more than 24 days would fire at once.
  ['SOURCE_TIMEOUT', '25h', '30d', '0s', 'off'],
  ['RETENTION', '36501d', '0d', 'never'],
  ['LEASE', '30', '0s', '11m', '1d'],
  ['ATTACHMENT_MAX_BYTES', '0', '-1', '50 potatoes', '1e9', '99999999999GB'],
  ['SOURCE_RATE', '10', '0/s', '-1/s', '10/d', 's', '/s', '0.04/h', `0.${'0'.repeat(20)}1/s`],
  ['SOURCE_CONCURRENCY', '0', '8.5', '0x8', 'eight', '1001'],
  ['SYNC_SCHEDULE', '61 * * * *', '* * * *', '* * * * * * *', '@daily', 'every day'],
  ['SYNC_START', '2026-02-31', 'yesterday', '2026-07-01T09:00:00', '01/07/2026'],
  [
    'SOURCE_URL',
    'api.example.com',
    'ftp://x',
    'https://u:p@x',
    'https://x?a=1',
    'https://x/#',
    'https://x/v1',
    'https://x/v1/',
  ],
  ['SOURCE_URL', 'https://x/v1/advertiser/applications', 'https://x/v2', 'https://'],
  ['SOURCE_CREDENTIAL', 'SWS abc', 'a\nb', ' abc', 'abc ', 'pässword'],
  // What a bearer token cannot carry would be accepted here and refused at every redeem.
  ['PREFILL_KEY', 'a long random text', 'key=1', 'key:1', 'ke"y', 'Bearer abc', 'schlüssel', 'a\nb'],
  ['WEBHOOK_URL', 'ats.example.com', 'ftp://x/', 'https://u:p@x/', 'https://x/#a'],
  [
    'WEBHOOK_SECRET',
    'a long random text, no base64',
    'whsec_c2hvcnQ=',
    whsec('x'.repeat(65)),
    `whsec_${'a'.repeat(33)}`,
  ],
  ['WEBHOOK_SECRET', `${whsec('a')} ${whsec('b')} ${whsec('c')}`, `${whsec('a')} b`],
  ['ADVERTISER_ID', '0', '-1', '1.5', 'abc', '9223372036854775808'],
  [
    'DATABASE_URL',
    'mysql://h/d',
    'db',
    'postgres:d',
    'postgres://u:p#ss@h/d',
    'postgres://h:port/d',
    'postgres://h/d?sslmode=on',
    'postgres://h/d?sslmod=require',
    'postgres://h/d?sslMode=require',
    'postgres://h1,h2/d',
    'postgres://h/d?sslmode=verify-ca',
    'postgres://h/d?sslmode=require&sslrootcert=system',
    // The driver, or we, would take each of these for a connection without TLS, or end with a stack.
    'postgres://h/d?ssl=1',
    'postgres://h/d?sslmode=disable&sslmode=verify-full',
    'postgres://h/d?sslmode=require&sslnegotiation=dirct',
    'postgres://h/d?sslmode=require&channel_binding=required',
    'postgres://h/d?port=abc',
    'postgres://h/d?sslmode=require&sslcert=/a.crt',
    'postgres://h/d?sslmode=require&sslkey=/a.key',
    'postgres://h%zz/d',
    'postgres://h%ff/d',
  ],
  ['DATABASE_DIRECT_URL', 'postgres://h1,h2/d', 'postgres://h/d?sslmode=on', 'postgres://h/d?sslmode=verify-ca'],
  ['BLOBS_URL', '/var/lib', 'file:', 'file://host/path', 's3://', 's3://UPPER', 'https://bucket', 's3://b/p?x'],
  ['ADMIN_PORT', '65536', '-1', 'http'],
  ['PREFILL_RETURN_URLS', 'careers.example.com', 'https://a.example,,https://b.example', 'javascript:alert(1)'],
  ['S3_FORCE_PATH_STYLE', 'yes', '1'],
  ['LOG_LEVEL', 'verbose'],
  ['SOURCE_FORMAT', 'JSON', 'yaml'],
];

it.each(refusals)('%s refuses what it cannot mean, with an example', (name, ...texts) => {
  const need = (Object.keys(sections) as (keyof typeof sections)[]).find((section) => name in sections[section]);
  for (const text of texts) {
    const problems = refuse({ ...account, [name]: text }, ...(need === undefined || need === 'process' ? [] : [need]));
    const problem = problems.find((one) => one.name === name);
    expect(problem, text).toBeDefined();
    expect(problem?.example, text).toMatch(new RegExp(`^${name}=.`));
  }
});

describe('problems', () => {
  it('all come at once, each naming its variable, in one block', () => {
    const env = {
      SOURCE_URL: 'x',
      SYNC_LAG: '15',
      ADMIN_HOST: '0.0.0.0',
      AUTH_URL: 'https://a',
      PRIVACY_KEY_FILE: '/nowhere',
    };
    const names = refusedNames(env);
    expect(names).toEqual([
      'SOURCE_URL',
      'SOURCE_CREDENTIAL',
      'SYNC_LAG',
      'ADMIN_USER',
      'ADMIN_PASSWORD',
      ...Object.keys(prefill).filter((name) => name !== 'AUTH_URL'),
      'PRIVACY_KEY_FILE',
    ]);
    const block = new ConfigProblems(refuse(env)).message;
    for (const name of names) expect(block).toContain(`\n  ${name} `);
    expect(block).toContain('example: SOURCE_URL=https://api.example.com');
  });

  it('never hold a secret or any other refused text', () => {
    const marker = 'xMARKERx';
    for (const [name, setting] of settings) {
      // The name of a file is told, so that it can be found.
      if (name === 'ADVERTISERS_FILE') continue;
      for (const text of [
        `${marker}\u0001`,
        ` ${marker}`,
        `https://${marker}:${marker}@h`,
        `postgres://${marker}#@h`,
        `SWS ${marker}`,
      ]) {
        const { message } = new ConfigProblems(refuse({ ...account, [name]: text }));
        expect(message, name).not.toContain(marker);
        if (!setting.secret) continue;
        const file = join(stateDir, 'secret');
        writeFileSync(file, text);
        expect(
          new ConfigProblems(refuse({ ...account, [name]: undefined, [`${name}_FILE`]: file })).message,
        ).not.toContain(marker);
      }
    }
  });
});

describe('secrets', () => {
  const names = [...settings].filter(([, setting]: [string, Setting]) => setting.secret).map(([name]) => name);

  it('print as [secret] wherever a configuration is shown', () => {
    const env = {
      ...production,
      ...prefill,
      ADMIN_USER: 'a',
      ADMIN_PASSWORD: 'pass-phrase, a long one',
      DATABASE_DIRECT_URL: 'postgres://u:direct-pw@h/d',
      ...webhook,
    };
    const config = load(env, ...all);
    for (const shown of [
      JSON.stringify(config, (_, v) => (typeof v === 'bigint' ? `${v}` : v)),
      inspect(config, { depth: 9, showHidden: true }),
    ]) {
      for (const name of names) expect(shown, name).not.toContain(String(env[name as keyof typeof env]));
      expect(shown).toContain('[secret]');
    }
    expect(`${config.privacy.PRIVACY_KEY}`).toBe('[secret]');
    expect(config.prefill?.OAUTH_CLIENT_SECRET.reveal()).toBe('p%ss:wörd');
  });

  it('come from a file, less one line break at its end, and remember it for reading again', () => {
    const file = join(stateDir, 'credential');
    for (const text of ['sesame', 'sesame\n', 'sesame\r\n']) {
      writeFileSync(file, text);
      const { credential } =
        load({ SOURCE_URL: 'https://x', SOURCE_CREDENTIAL_FILE: file }, 'source').source.advertisers[0] ?? {};
      expect(credential?.reveal()).toBe('sesame');
      expect(credential?.file).toBe(file);
    }
  });

  it('are as their file holds them now, and as they were while it cannot be read or has just been emptied', () => {
    const file = join(stateDir, 'rotated');
    writeFileSync(file, 'sesame\n');
    const [account] = load({ SOURCE_URL: 'https://x', SOURCE_CREDENTIAL_FILE: file }, 'source').source.advertisers;
    writeFileSync(file, 'barley\n');
    expect(account?.credential.current()).toBe('barley');
    writeFileSync(file, '');
    expect(account?.credential.current()).toBe('barley');
    rmSync(file);
    expect(account?.credential.current()).toBe('barley');
  });

  it('are refused when both forms are set, and when the file is empty, missing, a folder or closed to us', () => {
    const file = join(stateDir, 'empty');
    writeFileSync(file, '\n');
    const source = { SOURCE_URL: 'https://x' };
    expect(refuse({ ...account, SOURCE_CREDENTIAL_FILE: file }, 'source')).toMatchObject([
      { name: 'SOURCE_CREDENTIAL', text: 'and SOURCE_CREDENTIAL_FILE are both set: keep one of them' },
    ]);
    expect(
      load({ ...source, SOURCE_CREDENTIAL: '', PRIVACY_KEY: 'x'.repeat(16) }, 'privacy').privacy.PRIVACY_KEY.file,
    ).toBeNull();
    for (const [path, why] of [
      [file, 'is empty'],
      ['/nowhere', 'does not exist'],
      [stateDir, 'is a folder'],
    ] as const) {
      const [problem] = refuse({ ...source, SOURCE_CREDENTIAL_FILE: path }, 'source');
      expect(problem).toMatchObject({
        name: 'SOURCE_CREDENTIAL_FILE',
        text: expect.stringContaining(`${path}, which ${why}`),
      });
    }
    if (process.getuid?.() === 0) return;
    chmodSync(file, 0);
    expect(refuse({ ...source, SOURCE_CREDENTIAL_FILE: file }, 'source')[0]?.text).toContain(
      'is not readable by this user',
    );
  });
});

describe('several accounts', () => {
  /** An account that is complete. */
  const whole = { name: 'a', url: 'https://x', credential: 'x' };
  const north = 'http://gateway.internal';
  it.each([
    [{ name: 'north', credential: 'x', url: north }, /^ADVERTISERS_FILE names an http address/],
    [
      { name: 'north', credential: 'x', webhooks: [{ url: 'http://a.example/', secret: webhook.WEBHOOK_SECRET }] },
      /^ADVERTISERS_FILE names an http address/,
    ],
  ])('%j is warned of in production', (one, warning) => {
    const env = { ...listed([one]), NODE_ENV: 'production' };
    expect(load(env, 'source', 'webhooks').warnings).toEqual([expect.stringMatching(warning)]);
    expect(load({ ...env, NODE_ENV: 'test' }, 'source', 'webhooks').warnings).toEqual([]);
  });

  it('come from a file, each with its own address and credential or the common address', () => {
    writeFileSync(join(stateDir, 'north'), 'north-sesame\n');
    const list = [
      { name: 'north', credentialFile: 'north', advertiserId: '9007199254740993' },
      { name: 'south', credential: 'south-sesame', url: 'https://south.example.com/', advertiserId: 7 },
    ];
    const { advertisers } = load(listed(list), 'source').source;
    expect(advertisers).toMatchObject([
      { name: 'north', url: 'https://api.example.com', advertiserId: 9_007_199_254_740_993n },
      { name: 'south', url: 'https://south.example.com', advertiserId: 7n },
    ]);
    expect(advertisers.map(({ credential }) => credential.reveal())).toEqual(['north-sesame', 'south-sesame']);
    expect(advertisers[0]?.credential.file).toBe(join(stateDir, 'north'));
  });

  it('are known to a command on stored rows without their addresses and credentials, which nobody reads then', () => {
    expect(load({}, 'accounts').accounts).toEqual([{ name: 'default', advertiserId: null }]);
    const single = { SOURCE_CREDENTIAL_FILE: '/nowhere', ADVERTISER_ID: '7' };
    expect(load(single, 'accounts').accounts).toEqual([{ name: 'default', advertiserId: 7n }]);
    const list = [
      { name: 'north', credentialFile: 'nowhere' },
      { name: 'south', credential: 'xMARKERx' },
      { name: 'west', prefillKeyFile: 'nowhere', prefillReturnUrls: ['https://x'] },
    ];
    const { accounts } = load({ ...listed(list), SOURCE_URL: undefined }, 'accounts');
    expect(accounts.map(({ name }) => name)).toEqual(['north', 'south', 'west']);
    expect(JSON.stringify(accounts)).not.toContain('xMARKERx');
  });

  it('have a careers site each, which the settings of a single account do not replace', () => {
    writeFileSync(join(stateDir, 'north-key'), 'key-of-north\n');
    const list = [
      { name: 'north', credential: 'x', prefillKeyFile: 'north-key', prefillReturnUrls: ['https://north.example.com'] },
      {
        name: 'south',
        credential: 'y',
        prefillKey: 'key-of-south',
        prefillReturnUrls: ['https://south.example.com/a'],
      },
      { name: 'west', credential: 'z' },
    ];
    const env = listed(list);
    const config = load({ ...env, ...client }, 'prefill');
    expect(config.prefill?.sites.map(({ name, key, returnUrls }) => [name, key.reveal(), ...returnUrls])).toEqual([
      ['north', 'key-of-north', 'https://north.example.com/'],
      ['south', 'key-of-south', 'https://south.example.com/a'],
    ]);
    expect(refusedNames({ ...env, ...prefill }, 'prefill')).toEqual(['PREFILL_RETURN_URLS', 'PREFILL_KEY']);
    const { SOURCE_CREDENTIAL: _, ...rest } = production;
    expect(refusedNames({ ...rest, ...env, ...client }, 'prefill')).toEqual(['ADVERTISERS_FILE', 'ADVERTISERS_FILE']);
  });

  it('exclude the settings of a single one', () => {
    const env = { ...account, ...listed([{ name: 'a', credential: 'x' }]), ADVERTISER_ID: '1' };
    expect(refusedNames(env, 'source')).toEqual(['SOURCE_CREDENTIAL', 'ADVERTISER_ID']);
    expect(refuse({ ADVERTISERS_FILE: '/nowhere' }, 'source')[0]?.text).toContain(
      'names /nowhere, which does not exist',
    );
  });

  it.each<[problem: string, list: unknown]>([
    ['is not valid JSON', '[{"name": "a", "credential": xMARKERx}]'],
    ['the file must be a list', {}],
    ['the file must name at least one account', []],
    ['[0].name must be letters', [{ name: 'a b', credential: 'xMARKERx' }]],
    ['[0].url must be', [{ name: 'a', credential: 'xMARKERx', url: 'https://x/v1' }]],
    ['[0].url is required', [{ name: 'a', credential: 'xMARKERx' }]],
    ['[0].advertiserId must be', [{ name: 'a', credential: 'xMARKERx', advertiserId: -1 }]],
    ['[0].credential must be', [{ ...whole, credential: 'SWS xMARKERx' }]],
    ['[0] needs either', [{ name: 'a', url: 'https://x' }]],
    ['[0] needs either', [{ ...whole, credential: 'xMARKERx', credentialFile: 'y' }]],
    ['[0] has an unknown member secret', [{ ...whole, secret: 'xMARKERx' }]],
    ['[0].credentialFile', [{ name: 'a', url: 'https://x', credentialFile: 'nowhere' }]],
    ['[0] needs prefillReturnUrls', [{ ...whole, prefillKey: 'xMARKERx' }]],
    ['[0] needs either prefillKey or', [{ ...whole, prefillReturnUrls: ['https://x'] }]],
    ['[0].prefillReturnUrls', [{ name: 'a', credential: 'x', prefillKey: 'xMARKERx', prefillReturnUrls: 'https://x' }]],
    [
      'two accounts have the same key for prefills',
      [
        { name: 'a', credential: 'x', prefillKey: 'xMARKERx', prefillReturnUrls: ['https://x'] },
        { name: 'b', credential: 'y', prefillKey: 'xMARKERx', prefillReturnUrls: ['https://y'] },
      ],
    ],
    ['webhooks[0].url must be an http', [{ ...whole, webhooks: [{ ...hook, url: 'ats' }] }]],
    ['needs either secret or secretFile', [{ ...whole, webhooks: [{ url: hook.url }] }]],
    ['webhooks[0].secret must be whsec_', [{ ...whole, webhooks: [{ ...hook, secret: 'xMARKERx' }] }]],
    ['must be types of events', [{ ...whole, webhooks: [{ ...hook, events: ['application.read'] }] }]],
    ['must be true, false or "with personal data"', [{ ...whole, webhooks: [{ ...hook, full: 'personal' }] }]],
    ['has an unknown member ful', [{ ...whole, webhooks: [{ ...hook, ful: true }] }]],
    [
      'sends personal data, so its events must include application.erased',
      [{ ...whole, webhooks: [{ ...hook, full: 'with personal data', events: ['application.ready'] }] }],
    ],
    ['does not exist', [{ ...whole, webhooks: [{ url: hook.url, secretFile: 'absent' }] }]],
    [
      '[1].advertiserId occurs twice',
      [
        { ...whole, advertiserId: 1 },
        { ...whole, name: 'b', advertiserId: '1' },
      ],
    ],
  ])('are refused with the place in the file: %s', (problem, list) => {
    const problems = refuse({ ...client, ...listed(list), SOURCE_URL: undefined }, 'source', 'prefill', 'webhooks');
    expect(problems.map(({ name }) => name)).toContain('ADVERTISERS_FILE');
    expect(problems.map(({ text }) => text).join('\n')).toContain(problem);
    expect(JSON.stringify(problems)).not.toMatch(/xMARKERx|whsec_[A-Z]/);
  });
});

describe('what a checkout keeps', () => {
  const demo = {
    SOURCE_URL: 'http://127.0.0.1:4010',
    SOURCE_CREDENTIAL: 'demo',
    DATABASE_URL: 'postgres://demo@h/d',
    SYNC_LAG: '1m',
  };

  it('the settings of a running demo serve the commands beside it, and the real environment wins', () => {
    expect(refusedNames({}, 'source')).toEqual(ofAccount);
    saveDemoSettings(demo, stateDir);
    expect(statSync(join(stateDir, 'demo.json')).mode & 0o777).toBe(0o600);
    const config = load({ SYNC_LAG: '2m', LOG_LEVEL: '' }, 'source', 'sync', 'database');
    expect(config.source.advertisers[0]?.url).toBe('http://127.0.0.1:4010');
    expect(config.sync.SYNC_LAG).toBe(120_000);
    expect(load({ ...account }, 'source').source.advertisers[0]?.url).toBe('https://api.example.com');
  });

  it('a demo has a database, files and a key of its own', async () => {
    const opened: boolean[] = [];
    const openEmbedded = async (isDemo: boolean) => {
      opened.push(isDemo);
      throw new Error('not opened');
    };
    const open = async (env: Env, isDemo?: boolean) => {
      const needs = ['database', 'blobs', 'privacy'] as const;
      const config = loadConfig(env, { needs, stateDir, demo: isDemo ?? false, openEmbedded });
      const { database, blobs, privacy } = config;
      if (database.DATABASE_URL.reveal() === 'embedded')
        await expect(config.openEmbedded?.()).rejects.toThrow('not opened');
      return [blobs.BLOBS_URL, privacy.PRIVACY_KEY.reveal()] as const;
    };
    const [place, key] = await open(account);
    expect(place).toEqual({ kind: 'disk', path: join(stateDir, 'blobs') });
    saveDemoSettings({ ...demo, DATABASE_URL: 'embedded' }, stateDir);
    const ofDemo = await open({});
    expect(ofDemo[0]).toEqual({ kind: 'disk', path: join(stateDir, 'demo/blobs') });
    expect(ofDemo[1]).not.toBe(key);
    expect(await open(account, true)).toEqual(ofDemo);
    expect(await open(account)).toEqual([place, key]);
    expect(opened).toEqual([false, true, true, false]);
  });

  it('a demo is taken whole or not at all: its people never meet another database', () => {
    saveDemoSettings(demo, stateDir);
    expect(refusedNames({ DATABASE_URL: 'postgres://real@h/d' }, 'source')).toEqual(ofAccount);
    expect(refusedNames({ DATABASE_URL_FILE: '/nowhere' }, 'source')).toEqual(ofAccount);
    expect(refusedNames({ DATABASE_URL: demo.DATABASE_URL }, 'source')).toEqual([]);
  });

  it('a demo that has ended serves the commands that do not read its board', () => {
    writeFileSync(join(stateDir, 'demo.json'), JSON.stringify({ pid: 2 ** 30, env: demo }));
    expect(load({}, 'database', 'accounts', 'privacy').database.DATABASE_URL.reveal()).toBe(demo.DATABASE_URL);
    expect(refusedNames({}, 'database', 'source', 'sync', 'blobs')).toEqual(ofAccount);
  });

  it('a broken file is no demo', () => {
    const file = join(stateDir, 'demo.json');
    for (const text of ['{', '[]', JSON.stringify({ env: demo })]) {
      writeFileSync(file, text);
      expect(refusedNames({}, 'source'), text).toEqual(ofAccount);
    }
  });

  it('a privacy key is made once, for its owner only', () => {
    const state = join(stateDir, 'new');
    const first = loadConfig({}, { needs: ['privacy'], stateDir: state }).privacy.PRIVACY_KEY.reveal();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(loadConfig({}, { needs: ['privacy'], stateDir: state }).privacy.PRIVACY_KEY.reveal()).toBe(first);
    expect(statSync(join(state, 'privacy-key')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(state, 'privacy-key'), 'utf8')).toBe(`${first}\n`);
  });

  it('lies in the checkout beside the embedded database, from whichever folder a command is run', () => {
    const place = (env: Env) => loadConfig({ ...account, ...env }, { needs: ['blobs'] }).blobs.BLOBS_URL;
    const ours = { kind: 'disk', path: resolve('.intake/blobs') };
    for (const env of [{}, { DATABASE_URL: '' }, { DATABASE_URL: ' embedded ' }]) {
      expect(toStateDir(env)).toBe(resolve('.intake'));
      expect(place(env)).toEqual(ours);
    }
    // The key of one database must not be made beside another: a named one keeps to the working folder.
    for (const env of [{ DATABASE_URL: 'postgres://real@h/d' }, { DATABASE_URL_FILE: '/run/secrets/url' }]) {
      expect(toStateDir(env)).toBe('.intake');
      expect(place(env)).toEqual({ kind: 'disk', path: '.intake/blobs' });
    }
    expect(place({ BLOBS_URL: 'file:here/blobs' })).toEqual({ kind: 'disk', path: 'here/blobs' });
  });

  it('a privacy key that cannot be made is a problem, not a crash', () => {
    writeFileSync(join(stateDir, 'file'), '');
    const attempt = () => loadConfig({}, { needs: ['privacy'], stateDir: join(stateDir, 'file') });
    expect(attempt).toThrow(/PRIVACY_KEY is not set/);
    mkdirSync(join(stateDir, 'privacy-key'));
    expect(refusedNames({}, 'privacy')).toEqual(['PRIVACY_KEY']);
  });
});

describe('webhooks', () => {
  it('are none, or one of the single account, which gets thin messages of every type', () => {
    expect(load({}, 'webhooks').webhooks.endpoints).toEqual([]);
    const { endpoints, allowPrivate } = load(webhook, 'webhooks').webhooks;
    expect(endpoints).toMatchObject([{ account: 'default', name: 'default', types: null, detail: null }]);
    expect(allowPrivate).toBe(false);
  });

  it('of several accounts are in their list, with types, and a row only if the operator says which', () => {
    const env = listed([
      {
        name: 'north',
        credential: 'x',
        webhooks: [hook, { ...hook, name: 'crm', events: ['application.ready'], full: true }],
      },
      { name: 'south', credential: 'y', webhooks: [{ ...hook, full: 'with personal data' }] },
    ]);
    expect(load(env, 'webhooks').webhooks).toMatchObject({
      accounts: ['north', 'south'],
      endpoints: [
        { account: 'north', name: 'north', types: null, detail: null },
        { account: 'north', name: 'crm', types: ['application.ready'], detail: 'anonymous' },
        { account: 'south', name: 'south', detail: 'personal' },
      ],
    });
    expect(refusedNames({ ...env, ...webhook }, 'webhooks')).toEqual(['WEBHOOK_URL', 'WEBHOOK_SECRET']);
  });

  it('have names of their own', () => {
    const env = listed([{ name: 'north', credential: 'x', webhooks: [hook, hook] }]);
    expect(refuse(env, 'webhooks')).toMatchObject([
      { text: expect.stringContaining('[0].webhooks[1].name occurs twice: give each a name of its own') },
    ]);
    const accounts = ['north', 'south'].map((name) => ({
      name,
      credential: name,
      webhooks: [{ ...hook, name: 'ats' }],
    }));
    expect(refuse(listed(accounts), 'webhooks')).toMatchObject([
      { text: expect.stringContaining('[1].webhooks[0].name occurs twice') },
    ]);
  });

  it('read their secrets again for each message; what cannot be one changes nothing', () => {
    const file = join(stateDir, 'secret');
    const [first, second] = [whsec('one'), whsec('two')];
    writeFileSync(file, first);
    const env = { WEBHOOK_URL: webhook.WEBHOOK_URL, WEBHOOK_SECRET_FILE: file };
    const [endpoint] = load(env, 'webhooks').webhooks.endpoints;
    if (!endpoint) throw new Error('There is no endpoint.');
    writeFileSync(file, `${second}\n${first}\n`);
    expect(toWebhookSecrets(endpoint.secret)).toEqual([second, first]);
    for (const text of ['whsec_', '', `${second} ${first} ${second}`]) {
      writeFileSync(file, text);
      expect(toWebhookSecrets(endpoint.secret), text).toEqual([second, first]);
    }
    // The receiver knows only the second by now: the first must not come back with a file that is spoilt.
    writeFileSync(file, second);
    expect(toWebhookSecrets(endpoint.secret)).toEqual([second]);
    rmSync(file);
    expect(toWebhookSecrets(endpoint.secret)).toEqual([second]);
  });
});
