// Selects the applications of a list answer and their order, by filters, order and page limit of the account's choices.
// Does not know how rows are rendered.

import type { Account } from '../account/account.ts';
import type { Choices } from '../behaviour/choices.ts';
import { type BoardRow, countBelow } from '../people/applications.ts';
import { createDraw, mix } from '../people/random.ts';
import { readLocal } from '../wire/dates.ts';

/** The four parsed filters of a list request; undefined where not sent. */
export interface Filters {
  readonly afterid?: bigint;
  readonly afterdate?: number;
  readonly beforeid?: bigint;
  readonly beforedate?: number;
}

export type FilterName = keyof Filters;

/** The rows of one answer, without withdrawn ones. */
export function selectRows(account: Account, filters: Filters): BoardRow[] {
  const { choices } = account;
  const late = choices.filtersAfterCap;
  const tests = toTests(account, filters);
  const early = tests.filter((test) => !late.includes(test.name));
  const page = cutPage(account, orderRows(account, filterRows(account, filters, early)));
  const afterwards = tests.filter((test) => late.includes(test.name));
  return page.filter((row) => !account.isWithdrawn(row) && afterwards.every((test) => test.passes(row)));
}

/** The filters of a query, or the name of the first invalid one. */
export function readFilters(query: URLSearchParams, choices: Choices): Filters | { readonly unreadable: FilterName } {
  const filters: { afterid?: bigint; afterdate?: number; beforeid?: bigint; beforedate?: number } = {};
  for (const name of ['afterid', 'beforeid'] as const) {
    const text = query.get(name);
    if (text === null) continue;
    if (!/^-?\d{1,30}$/.test(text)) {
      if (choices.invalidFilter !== 'ignore') return { unreadable: name };
    } else filters[name] = BigInt(text);
  }
  for (const name of ['afterdate', 'beforedate'] as const) {
    const text = query.get(name);
    if (text === null) continue;
    const at = readLocal(text, choices.dateZone);
    if (at === null) {
      if (choices.invalidFilter !== 'ignore') return { unreadable: name };
    } else filters[name] = at;
  }
  return filters;
}

interface Test {
  readonly name: FilterName;
  /** The smallest id that passes, and the first that no longer does. Rows are sorted by id, so a binary search finds them. */
  readonly fromId?: bigint;
  readonly toId?: bigint;
  passes(row: BoardRow): boolean;
}

/** One test per filter that has an effect. */
function toTests(account: Account, filters: Filters): Test[] {
  const { choices } = account;
  const { afterid, afterdate, beforeid, beforedate } = filters;
  const tests: Test[] = [];
  const add = (test: Test) => {
    if (!choices.ignoredFilters.includes(test.name)) tests.push(test);
  };
  const after = choices.combination !== 'beforeWins' || (beforeid === undefined && beforedate === undefined);
  const before = choices.combination !== 'afterWins' || (afterid === undefined && afterdate === undefined);
  if (after && afterid !== undefined) {
    const fromId = choices.afterIdBound === 'inclusive' ? afterid : afterid + 1n;
    add({ name: 'afterid', fromId, passes: (row) => row.id >= fromId });
  }
  if (before && beforeid !== undefined) {
    const toId = choices.beforeIdBound === 'inclusive' ? beforeid + 1n : beforeid;
    add({ name: 'beforeid', toId, passes: (row) => row.id < toId });
  }
  if (after && afterdate !== undefined) {
    const from = choices.afterDateBound === 'inclusive' ? afterdate : afterdate + 1;
    add({ name: 'afterdate', passes: (row) => account.submittedAt(row) >= from });
  }
  if (before && beforedate !== undefined) {
    const to = choices.beforeDateBound === 'inclusive' ? beforedate + 1 : beforedate;
    add({ name: 'beforedate', passes: (row) => account.submittedAt(row) < to });
  }
  return tests;
}

function filterRows(account: Account, filters: Filters, tests: readonly Test[]): BoardRow[] {
  const { choices } = account;
  let { rows } = account;
  if (choices.defaultWindowDays !== null && filters.afterid === undefined && filters.afterdate === undefined) {
    const earliest = account.now() - choices.defaultWindowDays * 86_400_000;
    rows = rows.filter((row) => account.submittedAt(row) >= earliest);
  }
  if (tests.length === 0) return rows;
  if (choices.combination === 'or') return rows.filter((row) => tests.some((test) => test.passes(row)));
  const fromId = tests.find((test) => test.fromId !== undefined)?.fromId;
  const toId = tests.find((test) => test.toId !== undefined)?.toId;
  const from = fromId === undefined ? 0 : countBelow(rows, fromId);
  const to = toId === undefined ? rows.length : countBelow(rows, toId);
  const others = tests.filter((test) => test.fromId === undefined && test.toId === undefined);
  const between = rows.slice(from, to);
  return others.length === 0 ? between : between.filter((row) => others.every((test) => test.passes(row)));
}

function orderRows(account: Account, rows: BoardRow[]): BoardRow[] {
  const byKey = (key: (row: BoardRow) => number) => {
    const keys = new Map(rows.map((row) => [row, key(row)]));
    return rows.toSorted((a, b) => (keys.get(a) as number) - (keys.get(b) as number));
  };
  switch (account.choices.order) {
    case 'ascending':
      return rows;
    case 'descending':
      return rows.toReversed();
    case 'byDate':
      return byKey((row) => account.submittedAt(row));
    case 'byDateDescending':
      return byKey((row) => -account.submittedAt(row));
    case 'random':
      return byKey((row) => mix(account.seed, 11, row.ordinal));
    case 'perRequest':
      return byKey((row) => mix(account.seed, 12, account.requestCount, row.ordinal));
  }
}

function cutPage(account: Account, rows: BoardRow[]): BoardRow[] {
  const { pageCap, pageCapVaries } = account.choices;
  if (pageCap === null) return rows;
  const cap = pageCapVaries ? 1 + createDraw(account.seed, 13, account.requestCount).below(pageCap) : pageCap;
  return rows.slice(0, cap);
}
