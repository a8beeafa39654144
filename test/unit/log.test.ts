// The log tells ids, kinds and places. Markers stand for people and credentials: none may come out, whatever is thrown.

import { spawnSync } from 'node:child_process';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import { DatabaseError } from 'pg';
import { errors } from 'undici';
import { describe, expect, it } from 'vitest';
import { toSafeError } from '../../src/domain/safe-error.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { createLog } from '../../src/log.ts';

const marker = 'xMARKERx';

async function logged(...args: [object, string]): Promise<Record<string, unknown>> {
  const lines: string[] = [];
  const log = await createLog({ level: 'info', format: 'json' }, { write: (line) => void lines.push(line) });
  log.error(...args);
  return JSON.parse(lines.join(''));
}

function createDatabaseError(message: string): DatabaseError {
  const error = new DatabaseError(message, message.length, 'error');
  return Object.assign(error, {
    severity: 'ERROR',
    code: '23505',
    detail: `Key (email)=(${marker}) already exists.`,
    where: `COPY applications, line 1: "${marker}"`,
    hint: marker,
    internalQuery: marker,
    table: 'applications',
  });
}

function thrownBy(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

const thrown: [what: string, error: unknown, tells: string][] = [
  ['a row in a unique violation', createDatabaseError('violates unique constraint "x_pkey"'), 'x_pkey'],
  ['a value of the wrong type', createDatabaseError(`invalid syntax for type bigint: "${marker}"`), 'invalid syntax'],
  ['a value over lines', createDatabaseError(`invalid value for enum state: "a\n    at ${marker}"`), 'invalid value'],
  [
    'the parameters of a query',
    new DrizzleQueryError(`insert ${marker}`, [marker], createDatabaseError('relation "x" does not exist')),
    'relation \\"x\\" does not exist',
  ],
  [
    'the headers and body of an answer',
    new errors.ResponseError(`Response`, 401, { headers: { authorization: marker }, body: marker }),
    '401',
  ],
  ['a piece of broken JSON', thrownBy(() => JSON.parse(`{"email": ${marker}}`)), 'JSON'],
  ['a whole broken JSON', thrownBy(() => JSON.parse(marker)), 'JSON'],
  ['an address that is none', thrownBy(() => new URL(`//${marker}`)), 'Invalid URL'],
  [
    'the query of an address',
    new Error(`GET https://a.example/x?code=${marker}&state=${marker}`),
    'https://a.example/x',
  ],
  ['the password in an address', new Error(`no postgres://intake:${marker}@db:5432/x`), 'postgres://db:5432/x'],
  ['an e-mail address', new Error(`no reply from "${marker}@example.com"`), 'no reply from'],
  [
    'a member of an error',
    Object.assign(new Error('failed'), { payload: marker, config: { credential: marker }, body: [marker] }),
    'failed',
  ],
  ['a thrown text', marker, 'not an Error'],
  ['a thrown object', { email: marker }, 'not an Error'],
  [
    'the cause of the cause',
    new Trouble('unreachable', 'No answer.', {
      cause: new Error('outer', { cause: createDatabaseError(`x: "${marker}"`) }),
    }),
    'outer',
  ],
  ['what several errors hold', new AggregateError([createDatabaseError(`x: "${marker}"`)], ''), '23505'],
];

describe('an error', () => {
  it.each(thrown)('does not tell %s', async (_, error, tells) => {
    for (const told of [JSON.stringify(toSafeError(error)), JSON.stringify(await logged({ err: error }, 'failed'))]) {
      expect(told).not.toContain(marker);
    }
    expect(JSON.stringify(toSafeError(error))).toContain(tells);
  });

  it('tells its name, kind, status, code and message', async () => {
    const error = new Trouble('throttled', 'Too many requests.', {
      status: 429,
      cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
    });
    const { err } = await logged({ err: error }, 'failed');
    expect(err).toMatchObject({
      name: 'Trouble',
      kind: 'throttled',
      status: 429,
      message: 'Too many requests.',
      cause: { code: 'ECONNRESET', message: 'reset' },
    });
  });

  it('that is ordinary has no stack; a mistake of ours has, also as the cause of a trouble', async () => {
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    const ordinary = await logged({ err: new Trouble('unreachable', 'Away.', { cause: reset }) }, 'failed');
    expect(JSON.stringify(ordinary)).not.toContain('stack');
    const stack = expect.stringMatching(/^ {4}at .*log\.test\.ts/);
    const mistake = new TypeError('undefined is not a function');
    expect((await logged({ err: mistake }, 'failed')).err).toMatchObject({ stack });
    const hidden = await logged({ err: new Trouble('mismatch', 'Unexpected.', { cause: mistake }) }, 'failed');
    expect(hidden.err).toMatchObject({ cause: { stack } });
  });

  it('that causes itself comes to an end', () => {
    const error = new Error('round');
    error.cause = error;
    expect(JSON.stringify(toSafeError(error)).match(/round/g)?.length).toBeLessThan(10);
  });
});

describe('a line', () => {
  it('holds ids, counts and its time, and leaves every object out', async () => {
    const line = await logged(
      { advertiser: 'north', application: 9_007_199_254_740_993n, count: 3, page: { email: marker }, rows: [marker] },
      'swept',
    );
    expect(line).toMatchObject({
      level: 'error',
      advertiser: 'north',
      application: '9007199254740993',
      count: 3,
      msg: 'swept',
    });
    expect(line).toMatchObject({ page: '[left out]', rows: '[left out]' });
    expect(line.time).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(line).not.toHaveProperty('hostname');
  });

  it('is bounded, whatever it is given', async () => {
    expect(JSON.stringify(await logged({ reason: 'x'.repeat(100_000) }, 'failed')).length).toBeLessThan(1_000);
    expect(JSON.stringify(await logged({ err: new Error('x'.repeat(100_000)) }, 'failed')).length).toBeLessThan(10_000);
  });

  it.each([
    ['json', /^\{"level":"info"/],
    ['auto', /^\{"level":"info"/],
    ['pretty', /INFO.*: ready/],
  ])('goes to stderr as %s asks, and stays below the level unheard', (format, shape) => {
    const script = `import { createLog } from './src/log.ts';
      const log = await createLog({ level: 'info', format: '${format}' });
      log.debug('unheard'); log.info({ advertiser: 'north' }, 'ready'); process.exit(0);`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    expect(stdout).toBe('');
    expect(stderr).toMatch(shape);
    expect(stderr).toContain('north');
    expect(stderr).not.toContain('unheard');
  });
});
