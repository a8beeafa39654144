// `intake sync` as an operator runs it, against servers that once made a sweep lose applications: what is stored, what it says, how it ends.
import { describe, expect } from 'vitest';
import type { HiddenServer, ListedRow, ListReply, ListRequest } from '../simulation/hidden-server.ts';
import { serveHidden } from '../simulation/http-face.ts';
import { runIntake } from '../support/intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { openTestDatabase, test } from '../support/test-database.ts';

/** What one server does with a question: the rows that match both id filters (bounds excluded) and both date filters, by rising id. */
type Rule = (matching: readonly ListedRow[], request: ListRequest, nth: number) => readonly ListedRow[] | 400;

const now = Math.floor(Date.now() / 1_000);

/** Applications with even ids, each a few minutes after the one before it. */
function createRows(count: number, secondsApart: number, firstId = 1_000n): ListedRow[] {
  return Array.from({ length: count }, (_, nth) => {
    return { id: firstId + BigInt(nth) * 2n, submittedAt: now - (count - nth) * secondsApart, bytes: 600 };
  });
}

function isAsked({ id, submittedAt }: ListedRow, request: Partial<ListRequest>): boolean {
  const { afterId = null, beforeId = null, afterDate = null, beforeDate = null } = request;
  const at = submittedAt ?? 0;
  return (
    (afterId === null || id > afterId) &&
    (beforeId === null || id < beforeId) &&
    (afterDate === null || at > afterDate) &&
    (beforeDate === null || at < beforeDate)
  );
}

function createRuled(rows: readonly ListedRow[], rule: Rule): HiddenServer {
  let nth = 0;
  const all = () => rows.map(({ id }) => id);
  return {
    kind: 'ruled',
    isHeavy: false,
    seed: 0,
    list(request): ListReply {
      const matching = rows.filter((row) => isAsked(row, request));
      const shown = rule(matching, request, nth++);
      const shared = { echo: 'matches', age: null } as const;
      if (shown === 400) return { ...shared, status: 400, rows: [], bytes: 0 };
      return { ...shared, status: 200, rows: shown, bytes: 420 + shown.length * 601 };
    },
    presentThroughout: all,
    presentAt: all,
    passNight: () => undefined,
    passMinutes: () => undefined,
  };
}

/** Runs `intake sync` as a process of its own, and says who is stored. */
async function sync(server: HiddenServer) {
  await using database = await openTestDatabase();
  await using face = await serveHidden(server);
  const env = { ...toEnvironment(database, { url: face.url, credential: 'any' }), LOG_LEVEL: 'error' };
  const { code, stdout } = await runIntake(['sync', '--no-files'], env);
  const stored = await database.query<{ id: string }>(`SELECT application_id::text AS id FROM intake.applications`);
  return { code, stdout, ids: new Set(stored.map(({ id }) => BigInt(id))) };
}

const missingOf = (rows: readonly ListedRow[], ids: ReadonlySet<bigint>) =>
  rows.map(({ id }) => id).filter((id) => !ids.has(id));

describe('intake sync', () => {
  test('reads everybody when pages of 30 become pages of exactly 15', { tags: ['slow'] }, async () => {
    const rows = createRows(65, 600);
    const server = createRuled(rows, (matching, _, nth) => matching.slice(0, nth === 0 ? 30 : 15));
    const { code, stdout, ids } = await sync(server);
    expect(missingOf(rows, ids)).toEqual([]);
    expect(stdout).toContain('65 new');
    expect(stdout).not.toContain('coverage proven');
    expect(code).toBe(0);
  });

  test('reads everybody when a page is chosen by date and drafts were committed under old ids', {
    tags: ['slow'],
  }, async () => {
    // Every fifth application bears an old id and the date of its commit; places of deleted rows are spaced in between.
    const rows = createRows(120, 3_600).map((row, nth) =>
      nth % 5 === 0 ? { ...row, submittedAt: now - 600 - nth } : row,
    );
    const isDeleted = ({ id }: ListedRow) => id % 14n === 0n;
    const shown = rows.filter((row) => !isDeleted(row));
    const server = createRuled(rows, (matching) =>
      matching
        .toSorted((a, b) => (a.submittedAt ?? 0) - (b.submittedAt ?? 0))
        .slice(0, 30)
        .filter((row) => !isDeleted(row))
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
    const { code, stdout, ids } = await sync(server);
    expect(missingOf(shown, ids)).toEqual([]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/coverage (proven|assumed)/);
  });

  test('is not taken in by answers that are empty although applications are there', { tags: ['slow'] }, async () => {
    const rows = createRows(90, 600);
    const server = createRuled(rows, (matching, _, nth) => (nth % 5 === 2 ? [] : matching.slice(0, 20)));
    const { code, stdout, ids } = await sync(server);
    expect(missingOf(rows, ids)).toEqual([]);
    expect(stdout).not.toContain('coverage proven');
    expect([0, 3]).toContain(code);
  });

  test('stores whom the date filters show where id filters act after the cap, and does not call it complete', {
    tags: ['slow'],
  }, async () => {
    // 400 applications of one day; a page is the newest 100, and ids filter that page.
    const rows = createRows(400, 200);
    const server = createRuled(rows, (_, { afterId, beforeId, afterDate, beforeDate }) => {
      const page = rows.filter((row) => isAsked(row, { afterDate, beforeDate })).slice(-100);
      return page.filter((row) => isAsked(row, { afterId, beforeId }));
    });
    const { code, stdout, ids } = await sync(server);
    // Cut by date, every page shows its own 100: nobody is missing.
    expect(missingOf(rows, ids)).toEqual([]);
    expect(stdout).not.toContain('coverage proven');
    expect([0, 3]).toContain(code);
  });

  test('ends well at a source that refuses date filters', { tags: ['slow'] }, async () => {
    const rows = createRows(50, 600);
    const server = createRuled(rows, (matching, { afterDate, beforeDate }) =>
      afterDate !== null || beforeDate !== null ? 400 : matching.slice(0, 20),
    );
    const { code, stdout, ids } = await sync(server);
    expect(missingOf(rows, ids)).toEqual([]);
    expect(code).toBe(0);
    expect(stdout).toContain('50 new');
  });
});
