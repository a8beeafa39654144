// Retry-After, heard by one worker and honoured by all of them (P14).
import { describe, expect } from 'vitest';
import { openSources } from '../../../src/app/clients.ts';
import { loadConfig } from '../../../src/config.ts';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { openStore } from '../../../src/store/store.ts';
import { setClockBack } from '../../support/database/moved-clock.ts';
import { emptyDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { testPrivacyKey, toEnvironment } from '../../support/processes/syncing.ts';
import { until } from '../../support/suite/until.ts';

const never = new AbortController().signal;

/** An account as one worker has it open. */
async function openAccount(database: TestDatabase, board: Sandbox, nth = 0) {
  await using stack = new AsyncDisposableStack();
  const store = stack.use(openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) }));
  const { credential } = board.advertisers[nth] as Sandbox['advertisers'][number];
  const config = loadConfig(
    { ...toEnvironment(database, board), SOURCE_CREDENTIAL: credential },
    { needs: ['source'] },
  );
  const [account] = config.source.advertisers;
  if (!account) throw new Error('No account is configured.');
  const name = `account-${nth + 1}`;
  await store.advertisers.ensure(name, null);
  const source = stack.use(openSources(config, store)).open({ ...account, name });
  const owned = stack.move();
  return { source, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

describe('Retry-After that one worker hears', () => {
  test('keeps every worker from asking for this account, and for no other', async ({ database }) => {
    await emptyDatabase(database);
    await using board = await openSandbox({ applications: 1, advertisers: [{ applications: 1 }] });
    const [account] = board.advertisers;
    account?.fault({ kind: 'throttle', on: 'list', seconds: 3_600 });
    await using one = await openAccount(database, board);
    await using two = await openAccount(database, board);
    await using other = await openAccount(database, board, 1);
    await expect(one.source.list({}, never)).rejects.toMatchObject({ kind: 'throttled', retryAfterMs: 3_600_000 });
    board.clearRequests();
    for (const { source } of [one, two]) {
      const [{ id } = { id: 0n }] = [...board.truth()];
      for (const asked of [source.list({}, never), source.openAttachment('resume', id, never)]) {
        const trouble = await asked.then(
          () => null,
          (error: unknown) => error,
        );
        expect(trouble).toMatchObject({ kind: 'throttled' });
        const { retryAfterMs } = trouble as { retryAfterMs: number };
        expect(retryAfterMs).toBeGreaterThan(3_500_000);
        expect(retryAfterMs).toBeLessThanOrEqual(3_600_000);
      }
    }
    expect(board.requests()).toEqual([]);
    expect(await other.source.list({}, never)).toMatchObject({ kind: 'page' });

    // Its end, and a clock that was set back, let everybody ask again.
    await setClockBack(database.query, 86_400_000);
    expect(await two.source.list({}, never)).toMatchObject({ kind: 'page' });
    await database.query(`UPDATE intake.advertisers SET throttled_until = now()`);
    expect(await one.source.list({}, never)).toMatchObject({ kind: 'page' });
  });

  test('for some seconds is waited for by all of them', async ({ database }) => {
    await emptyDatabase(database);
    await using board = await openSandbox({ applications: 1 });
    await using one = await openAccount(database, board);
    await using two = await openAccount(database, board);
    board.fault({ kind: 'throttle', on: 'list', seconds: 2 });
    const answers = await Promise.all([
      one.source.list({}, never),
      until(() => board.requests().some(({ status }) => status === 429)).then(async () => {
        // From here on the first worker's answer is on its way, and soon in the database.
        await until(
          async () =>
            (await database.query(`SELECT 1 FROM intake.advertisers WHERE throttled_until IS NOT NULL`)).length > 0,
        );
        return await two.source.list({}, never);
      }),
    ]);
    expect(answers).toMatchObject([{ kind: 'page' }, { kind: 'page' }]);
    const [refused, ...served] = board.requests();
    for (const { at } of served) expect(at - (refused?.at ?? 0)).toBeGreaterThanOrEqual(1_900);
  });
});
