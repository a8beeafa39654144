// The cookbook on the demo's data: every query's rows against a computation from the sandbox's truth that shares no SQL with it.
// `npm test -- test/journey/cookbook.test.ts -u` writes the results into the page.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect } from 'vitest';
import type { TruthRow } from '../../src/dev/sandbox/account/truth.ts';
import {
  connectedAt,
  type DemoTruth,
  fillFromDemoBoard,
  isWaiting,
  readAt,
  toFate,
  toSeenAt,
} from '../support/database/demo-board.ts';
import { test as base, openTestDatabase } from '../support/database/test-database.ts';
import { cookbookFile, loadRecipes, type Result, renderCookbook, runRecipe } from '../support/documents/cookbook.ts';

const test = base.extend('demo', { scope: 'file' }, async ({ database }) => await fillFromDemoBoard(database));

type Cell = string | number | null;
type Rows = readonly (readonly Cell[])[];

const day = 86_400_000;
const calendar = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Brisbane', dateStyle: 'short' });
const clock = new Intl.DateTimeFormat('en-AU', { timeZone: 'Australia/Brisbane', hour: '2-digit', hourCycle: 'h23' });

const toDay = (at: number) => calendar.format(at);
const within = (from: string, to: string) => (row: TruthRow) =>
  from <= toDay(row.submittedAt) && toDay(row.submittedAt) <= to;
const october = within('2026-10-01', '2026-10-31');
const of = (job: string) => (row: TruthRow) => row.jobReference === job;
const countBy = <T>(all: Iterable<T>, key: (one: T) => string) =>
  groupsOf(all, key).map(([name, some]) => [name, some.length] as const);
const screensOf = (rows: readonly TruthRow[]) =>
  rows.flatMap((row) => row.screens.map((screen) => ({ ...screen, row })));
const passed = (rows: readonly TruthRow[]) => screensOf(rows).filter(({ outcome }) => outcome === 'pass').length;
/** Postgres sorts null last. */
const byName = (a: string | null, b: string | null) =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;

const byKey = ([a]: readonly [string, number], [b]: readonly [string, number]) => byName(a, b);

function groupsOf<T, K>(all: Iterable<T>, key: (one: T) => K): [K, T[]][] {
  return [...Map.groupBy(all, key)];
}

/** A share with so many digits, rounded half away from zero as numeric is; null of nothing. */
function share(part: number, whole: number, digits = 2): string | null {
  if (whole === 0) return null;
  const scale = 10 ** digits;
  return (Math.floor((2 * part * scale + whole) / (2 * whole)) / scale).toFixed(digits);
}

/** What Postgres calls percentile_cont, over whole seconds. */
function percentile(sorted: readonly number[], at: number): string {
  const place = at * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)] ?? 0, sorted[Math.ceil(place)] ?? 0];
  return (low + (high - low) * (place - Math.floor(place))).toFixed(1);
}

/** Choice questions of one job's screens: the answer offered, and what became of the screen. */
function offersOf(rows: readonly TruthRow[]) {
  return screensOf(rows).flatMap((screen) =>
    screen.questions
      .filter(({ type }) => type !== 'Text' && type !== 'URLQuestion')
      .flatMap((question) => question.answers.map((answer) => ({ screen, question, answer }))),
  );
}

/** The Monday of the week in which it was submitted. */
function toMonday(row: TruthRow): string {
  const at = Date.parse(toDay(row.submittedAt));
  return new Date(at - ((new Date(at).getUTCDay() + 6) % 7) * day).toISOString().slice(0, 10);
}

/** The answers to the questions, by number. */
const expected: Record<number, (demo: DemoTruth) => Rows> = {
  1: ({ truth }) =>
    groupsOf(truth.filter(within('2026-10-05', '2026-11-01')), toMonday)
      .map(([week, rows]) => [week, rows.length, passed(rows), screensOf(rows).length - passed(rows)])
      .sort(([a], [b]) => byName(a as string, b as string)),
  2: ({ truth }) =>
    groupsOf(
      truth.filter((row) => row.jobReference !== null),
      (row) => row.jobReference,
    )
      .sort(([a, some], [b, others]) => others.length - some.length || byName(a, b))
      .slice(0, 5)
      .map(([job, rows]) => {
        const last = toDay(Math.max(...rows.map((row) => row.submittedAt)));
        return [job, rows.length, last, share(passed(rows), screensOf(rows).length)];
      }),
  3: ({ truth }) =>
    groupsOf(truth, (row) => row.jobReference)
      .map(([job, rows]) => {
        const before = (days: number) => rows.filter((row) => row.submittedAt > readAt - days * day).length;
        return {
          job,
          last7: before(7),
          before: before(35) - before(7),
          last: Math.max(...rows.map((row) => row.submittedAt)),
        };
      })
      .filter(({ last7, before }) => last7 === 0 && before >= 4)
      .sort((a, b) => b.before - a.before || byName(a.job, b.job))
      .map(({ job, before, last }) => [job, before, toDay(last)]),
  4: ({ truth }) =>
    Array.from({ length: 7 }, (_, index) => {
      const date = new Date(Date.UTC(2026, 9, 26 + index)).toISOString().slice(0, 10);
      return [date, truth.filter(of('002015')).filter(within(date, date)).length];
    }),
  5: ({ truth }) =>
    countBy(truth.filter(october), (row) => String(Math.floor(Number(clock.format(row.submittedAt)) / 6) * 6)).sort(
      ([a], [b]) => Number(a) - Number(b),
    ),
  6: ({ truth }) =>
    countBy(
      countBy(truth, (row) => row.jobSeekerId),
      ([, times]) => String(times),
    ).sort(byKey),
  7: ({ truth }) =>
    countBy(
      countBy(truth.filter(of('002015')), (row) => row.jobSeekerId),
      ([, times]) => String(times),
    )
      .sort(byKey)
      .map(([times, persons]) => [times, persons, Number(times) * persons]),
  8: ({ truth }) =>
    groupsOf(screensOf(truth.filter(october)), ({ row }) => row.jobReference)
      .sort(([a, some], [b, others]) => others.length - some.length || byName(a, b))
      .slice(0, 5)
      .map(([job, screens]) => {
        const good = screens.filter(({ outcome }) => outcome === 'pass').length;
        return [job, screens.length, good, share(good, screens.length)];
      }),
  9: ({ truth }) =>
    groupsOf(offersOf(truth.filter(of('REQ-2026-8888'))), ({ screen, question, answer }) =>
      JSON.stringify([screen.screenId, question.text, answer.text]),
    )
      .map(([key, offers]) => {
        const [screen, question, answer] = JSON.parse(key) as [string, string, string];
        const rate = (some: typeof offers) =>
          some.length === 0 ? null : some.filter((one) => one.screen.outcome === 'pass').length / some.length;
        const chosen = offers.filter((one) => one.answer.selected);
        const [yes, no] = [rate(chosen), rate(offers.filter((one) => !one.answer.selected))];
        return {
          screen,
          question,
          answer,
          chosen: chosen.length,
          yes,
          power: yes === null || no === null ? null : no - yes,
        };
      })
      .filter(({ power }) => power !== null && power > 0.5)
      .sort((a, b) => Number(b.power) - Number(a.power) || byName(a.screen, b.screen) || byName(a.question, b.question))
      .map((one) => [
        one.screen,
        one.question,
        one.answer,
        one.chosen,
        one.yes?.toFixed(2) ?? null,
        one.power?.toFixed(2) ?? null,
      ]),
  10: ({ truth }) =>
    groupsOf(
      offersOf(truth.filter(of('002015'))).filter(({ question }) => question.type !== 'True/False'),
      ({ question, answer }) => JSON.stringify([question.text, answer.text]),
    )
      .map(([key, offers]) => {
        const [question, answer] = JSON.parse(key) as [string, string];
        return { question, answer, offers, chosen: offers.filter((one) => one.answer.selected).length };
      })
      .sort((a, b) => byName(a.question, b.question) || b.chosen - a.chosen || byName(a.answer, b.answer))
      .map(({ question, answer, offers, chosen }) => [
        question,
        1,
        answer,
        offers.length,
        chosen,
        share(chosen, offers.length),
      ]),
  11: ({ truth }) =>
    groupsOf(screensOf(truth.filter(of('REQ-2026-8888'))), ({ screenId }) => screenId)
      .map(([screenId, screens]) => {
        const days = screens.map(({ row }) => toDay(row.submittedAt)).sort();
        const failed = screens.filter(({ outcome }) => outcome === 'fail').length;
        return [screenId, screens[0]?.name ?? null, screens.length, failed, days[0] ?? null, days.at(-1) ?? null];
      })
      .sort(([a], [b]) => byName(a as string, b as string)),
  12: ({ truth }) =>
    groupsOf(truth.filter(october), (row) => row.jobReference)
      .sort(([a, some], [b, others]) => others.length - some.length || byName(a, b))
      .slice(0, 5)
      .map(([job, rows]) => {
        const months = rows.flatMap((row) => row.jobSeekingInfo?.timeInRoleMonths ?? []);
        const fresh = rows.filter((row) => row.jobSeekingInfo?.isNewToWorkforce).length;
        return [
          job,
          rows.length,
          fresh,
          share(
            months.reduce((sum, one) => sum + one, 0),
            months.length,
            0,
          ),
        ];
      }),
  13: ({ truth }) =>
    [false, true].map((wanted) => {
      const rows = truth
        .filter(october)
        .filter((row) => row.screens.length > 0)
        .filter((row) => row.attachments.some(({ kind }) => kind === 'coverLetter') === wanted);
      const good = rows.filter((row) => row.screens.every(({ outcome }) => outcome === 'pass')).length;
      return [wanted ? 't' : 'f', rows.length, share(good, rows.length)];
    }),
  14: ({ truth }) =>
    groupsOf(
      truth
        .filter(of('002015'))
        .flatMap((row) => row.attachments.map((file) => ({ ...file, fate: toFate(row, file) }))),
      ({ kind }) => kind,
    )
      .map(([kind, files]) => {
        const count = (state: string) => files.filter(({ fate }) => fate === state).length;
        return [kind, files.length, count('stored'), count('pending')];
      })
      .sort(([a], [b]) => byName(a as string, b as string)),
  15: ({ truth }) => {
    const reasons: Record<string, string> = {
      missing: 'The source does not have it (404).',
      given_up: 'The source sent an error page instead of the file. Tried 8 times.',
      waiting: 'The source failed (503).',
    };
    return countBy(
      truth.flatMap((row) =>
        row.attachments.map((file) => [toFate(row, file).replace('pending', 'waiting'), file.kind].join()),
      ),
      (key) => key,
    )
      .filter(([key]) => !key.startsWith('stored'))
      .sort(byKey)
      .map(([key, files]) => {
        const [problem = '', kind = ''] = key.split(',');
        return [problem, kind, reasons[problem] ?? '', files];
      });
  },
  16: ({ truth }) =>
    groupsOf(truth.filter((row) => row.submittedAt >= connectedAt).filter(within('2026-10-28', '2026-11-01')), (row) =>
      toDay(row.submittedAt),
    )
      .map(([date, rows]) => {
        const seconds = rows.map((row) => (toSeenAt(row) - row.submittedAt) / 1000).sort((a, b) => a - b);
        return [date, rows.length, percentile(seconds, 0.5), percentile(seconds, 0.95), percentile(seconds, 1)];
      })
      .sort(([a], [b]) => byName(a as string, b as string)),
  17: ({ truth }) => {
    const july = truth.filter(within('2026-07-01', '2026-07-31'));
    const reason = 'every id range was read; cross-checks agree';
    const waiting = july.filter(isWaiting).length;
    return [['default', 't', july.length, waiting, 'proven', 'none', reason, 0, toDay(readAt)]];
  },
  18: ({ truth }) => {
    const without = truth.filter((row) => row.jobReference === null).length;
    return [['no_job_reference', without, truth.length, share(without, truth.length, 3)]];
  },
  19: ({ truth, requests }) => [[requests, truth.length, 0]],
  20: ({ truth }) =>
    truth
      .filter(of('GDE-1218-VIC'))
      .filter(within('2026-10-26', '2026-11-01'))
      .filter((row) => row.screens.length > 0 && row.screens.every(({ outcome }) => outcome === 'pass'))
      .sort((a, b) => a.submittedAt - b.submittedAt)
      .map((row) => [row.firstName, row.lastName, row.email, row.phone, toDay(row.submittedAt)]),
  21: ({ truth }) =>
    groupsOf(truth.filter(of('002015')).filter(within('2026-09-28', '2026-11-01')), toMonday)
      .map(([week, rows]) => [week, rows.length, new Set(rows.map((row) => row.jobSeekerId)).size, passed(rows)])
      .sort(([a], [b]) => byName(a as string, b as string)),
  22: ({ truth }) =>
    groupsOf(truth, (row) => row.jobReference)
      .sort(([a, some], [b, others]) => others.length - some.length || byName(a, b))
      .slice(0, 5)
      .map(([job, rows]) => ['default', 'application.received', job, rows.length]),
};

const recipes = loadRecipes();

describe('the cookbook', () => {
  test('numbers its questions, and each has an answer of its own here', () => {
    const numbers = recipes.map(({ number }) => number);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1));
    expect(Object.keys(expected).map(Number), 'test/journey/cookbook.test.ts computes each answer itself').toEqual(
      numbers,
    );
  });

  for (const { number, question, sql } of recipes) {
    test(`${number}. ${question}`, async ({ database, demo }) => {
      const { rows } = await runRecipe(database.url, sql);
      const wanted = expected[number]?.(demo) ?? [];
      expect(wanted.length).toBeGreaterThan(0);
      expect(rows).toEqual(wanted.map((row) => row.map((cell) => (cell === null ? null : String(cell)))));
    });
  }

  test('shows these results (npm test -- test/journey/cookbook.test.ts -u)', async ({ database, demo: _ }) => {
    const results = new Map<number, Result>();
    for (const { number, sql } of recipes) results.set(number, await runRecipe(database.url, sql));
    await expect(renderCookbook(results)).toMatchFileSnapshot(resolve(cookbookFile));
  });
});

describe('the six questions of the README', () => {
  const [, block = ''] = /```sql\n([\s\S]+?)```/.exec(readFileSync('README.md', 'utf8')) ?? [];
  const questions = Array.from(
    block.matchAll(/^-- (.+)\n(.+;)$/gm),
    ([, words = '', sql = '']) => [words, sql] as const,
  );

  test.for(questions)('%s', async ([, sql], { database, demo: _ }) => {
    expect((await database.query(sql)).length).toBeGreaterThan(0);
  });

  test('are six', () => {
    expect(questions).toHaveLength(6);
  });

  test('have an answer before anything was read, as those of the cookbook have', async () => {
    await using database = await openTestDatabase();
    await database.query(`INSERT INTO intake.advertisers (name) VALUES ('not read yet')`);
    for (const sql of [...recipes.map((recipe) => recipe.sql), ...questions.map(([, sql]) => sql)]) {
      const rows = await database.query(sql);
      // Nobody and nothing is counted; all ids are one range that nothing vouches for.
      const told = rows
        .flatMap((row) => Object.entries(row))
        .filter(([name, value]) => name !== 'open_ranges' && !(value instanceof Date) && Number(value) > 0);
      expect(told, sql).toEqual([]);
    }
    expect(await database.query(`SELECT certificate, complete_through FROM intake_analytics.completeness`)).toEqual([
      { certificate: 'unproven', complete_through: null },
    ]);
  });
});

test('the query that docs/analyse.md writes into a CSV file has rows', async ({ database, demo: _ }) => {
  const [, sql = ''] = /--csv -c "(.+?)" >/.exec(readFileSync(cookbookFile, 'utf8')) ?? [];
  expect((await database.query(sql)).length).toBeGreaterThan(0);
});

test('a certificate names the assumptions that it rests on', async ({ database, demo: _ }) => {
  const assumptions =
    'The source applies both id filters before it cuts a page off, and takes nothing out of a page afterwards; within one sweep, every page has room for at least half of the rows and three quarters of the bytes of any other, and no application fills a quarter of a page; every answer comes from one current list (no cache, no stale replica, no default window, no grouping by person).';
  expect(await database.query(`SELECT assumptions FROM intake_analytics.completeness`)).toEqual([{ assumptions }]);
});

test('applications that wait for a file are not counted as ready', async ({ database, demo }) => {
  const [row] = await database.query<{ ready: string; all: string }>(
    `SELECT sum(ready) AS ready, sum(applications) AS all FROM intake_analytics.ingest_delay_daily`,
  );
  const late = demo.truth.filter(({ submittedAt }) => submittedAt >= connectedAt);
  expect(row).toEqual({ ready: String(late.filter((one) => !isWaiting(one)).length), all: String(late.length) });
});
