// `intake doctor`: what it looks at, how it says what is wrong, and that it leaves nothing behind.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/sandbox/server.ts';
import { openScratch } from '../support/blob-stores.ts';
import { callIntake } from '../support/intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { test } from '../support/test-database.ts';

interface Told {
  readonly findings: readonly { readonly check: string; readonly ok: boolean }[];
}

describe('doctor', () => {
  test('finds everything well, or says which part is not and ends with its code', async ({ database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    const folder = join(scratch.path, 'blobs');
    const env = toEnvironment(database, board, folder);
    const ask = async (changed: Record<string, string> = {}) => {
      const { code, stdout } = await callIntake(['doctor', '--json'], { ...env, ...changed });
      const { findings } = JSON.parse(stdout) as Told;
      return {
        code,
        checks: findings.map((one) => one.check),
        bad: findings.filter((one) => !one.ok).map((one) => one.check),
      };
    };
    expect(await ask()).toEqual({
      code: 0,
      bad: [],
      checks: [
        ...['configuration', 'database', 'schema', 'clock', 'PRIVACY_KEY', 'storage'],
        ...['default: credential', 'default: advertiser', 'default: learned'],
      ],
    });
    expect(
      existsSync(folder)
        ? readdirSync(folder, { recursive: true }).filter((name) => /[0-9a-f]{64}/.test(String(name)))
        : [],
    ).toEqual([]);
    expect(await ask({ SOURCE_CREDENTIAL: 'of-yesterday' })).toMatchObject({ code: 4, bad: ['default: source'] });
    board.choose({ sunset: 'header' });
    expect((await ask()).checks).toContain('default: sunset');
    const blocked = join(scratch.path, 'a-file');
    writeFileSync(blocked, '');
    expect(await ask({ BLOBS_URL: `file:${blocked}` })).toMatchObject({ code: 5, bad: ['storage'] });
  });

  test('does not call complete what a worker would refuse: a prefill that is set by half', async ({ database }) => {
    await using board = await openSandbox();
    await using scratch = await openScratch();
    const env = { ...toEnvironment(database, board, scratch.path), OAUTH_CLIENT_ID: 'careers' };
    const { code, stderr } = await callIntake(['doctor'], env);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('OAUTH_CLIENT_SECRET') });
  });
});
