// The kinds of hidden servers.
//
// To add a kind, add a `kind(name, traits)` to a list below. `traits` is only what differs from the friendly server (see Traits in
// hidden-server.ts), or a function that gets its own random draws. A kind that may break an assumption in some seed is a `breaksFilters`,
// `breaksCap` or `breaksList`; all others keep all three in every seed:
//   filtersBeforeCap: the server applies both id filters, as numbers, before it cuts off a page.
//   capAboveHalf:     the rows (or bytes) at which it cuts off questions by id stay within [M/2, M] from one night to the next.
//   oneCurrentList:   every answer comes from one list, as it is at that moment.
// In test/unit/coverage/coverage-simulation.test.ts nobody may be lost by a kind that keeps all three.
import type { Draws } from './draws.ts';
import {
  type Ask,
  type Cap,
  compareText,
  createServer,
  type FilterName,
  type Keeps,
  type Kind,
  type ListRequest,
  type Traits,
  unlimited,
} from './hidden-server.ts';
import { beginning } from './world.ts';

type ToTraits = Traits | ((draws: Draws) => Traits);

const kindThatBreaks =
  (...broken: readonly (keyof Keeps)[]) =>
  (name: string, traits: ToTraits): Kind => {
    const keepsAll = { filtersBeforeCap: true, capAboveHalf: true, oneCurrentList: true };
    const keeps: Keeps = { ...keepsAll, ...Object.fromEntries(broken.map((one) => [one, false])) };
    const toTraits = typeof traits === 'function' ? traits : () => traits;
    return { name, keeps, create: (seed, options = {}) => createServer(name, seed, options, toTraits) };
  };
const kind = kindThatBreaks();
const breaksFilters = kindThatBreaks('filtersBeforeCap');
const breaksCap = kindThatBreaks('capAboveHalf');
const breaksList = kindThatBreaks('oneCurrentList');

const minuteMs = 60_000;
const daySeconds = 86_400;

const half = (count: number) => Math.ceil(count / 2);
const third = (count: number) => Math.max(1, Math.floor(count / 3));
const byCount = (count: number): Cap => ({ ...unlimited, count });
const byBytes = (bytes: number): Cap => ({ ...unlimited, bytes });
const urlOf = ({ request }: Ask) =>
  [request.afterId, request.beforeId, request.afterDate, request.beforeDate].map(String).join('&');

const byPageBytes = ({ pageBytes }: Ask) => byBytes(pageBytes);
const halvedByDeploy = ({ page, deployed }: Ask) => byCount(deployed ? half(page) : page);
const bytesHalvedByDeploy = ({ pageBytes, deployed }: Ask) => byBytes(deployed ? half(pageBytes) : pageBytes);
/** Refuses two id filters. */
const twoIdFilters = ({ idFilters }: Ask) => (idFilters === 2 ? 400 : null);
/** These filters come later than the others, or never. */
const only =
  (stage: 'after-cap' | 'never', ...filters: readonly FilterName[]) =>
  (filter: FilterName) =>
    filters.includes(filter) ? stage : 'before-cap';
const columns = { afterId: 0, beforeId: 1, afterDate: 2, beforeDate: 3 } as const;
/** Draws for each number of id filters which bounds are included. */
function drawInclusive(draws: Draws): NonNullable<Traits['inclusive']> {
  const table = Array.from({ length: 12 }, () => draws.chance(0.5));
  return (filter, { idFilters }) => table[idFilters * 4 + columns[filter]] ?? false;
}

/** Up to one application in thirty cannot be served. */
function poisonous(draws: Draws, failure: '500' | 'broken'): Pick<Traits, 'poison'> {
  const share = 1 / draws.logInt(30, 600);
  return { poison: ({ hash }) => (hash < share ? failure : null) };
}

/** Rows whose id on the wire is not a number. They take places in a page, and no question can show their id. */
function unreadableIds(isOne: (id: bigint) => boolean): Traits {
  return {
    shows: (row) => (isOne(row.id) ? { ...row, unreadable: true } : row),
    couldShow: ({ id }) => !isOne(id),
  };
}

/** True for one question in twenty. */
function isUnlucky(before: number): boolean {
  return (before * 7919) % 20 === 3;
}

const clampTo = (request: ListRequest, most: bigint): ListRequest => ({
  ...request,
  afterId: request.afterId !== null && request.afterId > most ? most : request.afterId,
  beforeId: request.beforeId !== null && request.beforeId > most ? most : request.beforeId,
});

/** Daylight saving time in Victoria, from October 2023 to April 2027. */
function isSummer(seconds: number): boolean {
  const summers = [
    [1_696_089_600, 1_712_419_200],
    [1_728_144_000, 1_743_868_800],
    [1_759_593_600, 1_775_318_400],
    [1_791_043_200, 1_806_768_000],
  ] as const;
  return summers.some(([from, to]) => from <= seconds && seconds < to);
}

export const kinds: readonly Kind[] = [
  // The order in which rows are chosen and shown
  kind('friendly', {}),
  kind('order-id-descending', { order: 'id-descending' }),
  kind('order-date', { world: { dates: 'drafts-late' }, order: 'date' }),
  kind('order-date-descending', { world: { dates: 'drafts-late' }, order: 'date-descending' }),
  kind('order-day-then-id-descending', { order: 'day-then-id-descending' }),
  kind('order-score', { order: 'score' }),
  kind('order-hash', { order: 'hash' }),
  kind('order-job', { order: 'job' }),
  kind('order-person', { order: 'person' }),
  kind('order-size', { order: 'size' }),
  kind('order-commit', { world: { drafts: 0.2 }, order: 'commit' }),
  kind('order-modified', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(300, 8000),
      mix: { arrival: 0.2, late: 0.1, deletion: 0.1, change: 0.6, return: 0 },
    },
    order: 'modified',
  })),
  kind('order-id-text', { world: { ids: 'digits' }, order: 'id-text' }),
  kind('order-random', { order: 'random' }),
  kind('order-date-random-ties', { world: { dates: 'ties' }, order: 'date-random-ties' }),
  kind('order-flips-mid-sweep', { order: ({ deployed }) => (deployed ? 'id-descending' : 'id') }),
  kind('order-per-shape', (draws) => {
    const orders = draws.shuffle(['id', 'id-descending', 'date', 'hash'] as const);
    return { order: ({ idFilters }) => orders[idFilters] ?? 'id' };
  }),
  kind('chosen-date-shown-id', { world: { dates: 'drafts-late' }, order: 'date', shown: 'id' }),
  kind('chosen-id-shown-id-descending', { order: 'id', shown: 'id-descending' }),
  kind('chosen-hash-shown-id', { order: 'hash', shown: 'id' }),
  kind('chosen-random-shown-id', { order: 'random', shown: 'id' }),

  // How many rows or bytes a page holds
  kind('cap-none', { cap: () => unlimited }),
  kind('cap-one', { page: 1, nightFactors: [1] }),
  kind('cap-seven-descending', { page: 7, nightFactors: [1], order: 'id-descending' }),
  kind('cap-bytes-stops-before', { world: { sizes: 'heavy' }, cap: byPageBytes }),
  kind('cap-bytes-stops-after', {
    world: { sizes: 'heavy' },
    cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), overflow: 'after' }),
  }),
  // A page by bytes guarantees no first row, and each row fits alone.
  kind('cap-bytes-may-show-none', {
    world: { sizes: 'wholes' },
    nightFactors: [1, 1, 2],
    cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), atLeastOne: false }),
  }),
  // Rows above the byte cap show in no answer, and a page ends before them, so it may be empty though rows follow.
  breaksCap('cap-bytes-blocked-by-giant', {
    world: { sizes: 'oversized' },
    nightFactors: [1],
    cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), atLeastOne: false }),
    couldShow: (row, pageBytes) => row.bytes <= pageBytes,
  }),
  kind('cap-bytes-giant-shows-alone', { world: { sizes: 'oversized' }, cap: byPageBytes, order: 'id-descending' }),
  kind('cap-count-and-bytes', {
    world: { sizes: 'heavy' },
    cap: ({ page, pageBytes }) => ({ ...byBytes(pageBytes), count: page }),
  }),
  kind('cap-random-above-half', { cap: ({ page, draws }) => byCount(draws.int(Math.floor(page / 2) + 1, page)) }),
  breaksCap('cap-random-below-half', { leastPage: 4, cap: ({ page, draws }) => byCount(draws.int(1, page)) }),
  kind('cap-by-shape-within-half', (draws) => {
    const parts = draws.shuffle([1, 0.5, draws.between(0.5, 1)]);
    return { cap: ({ page, idFilters }) => byCount(Math.ceil(page * (parts[idFilters] ?? 1))) };
  }),
  breaksCap('cap-by-shape-beyond-half', {
    leastPage: 5,
    cap: ({ page, idFilters }) => byCount(idFilters === 2 ? Math.floor(page / 5) : page),
  }),
  kind('cap-halved-mid-sweep', { cap: halvedByDeploy }),
  kind('cap-doubled-mid-sweep', {
    order: 'id-descending',
    cap: ({ page, deployed }) => byCount(deployed ? page * 2 : page),
  }),
  breaksCap('cap-one-row-mid-sweep', {
    leastPage: 3,
    order: 'id-descending',
    cap: ({ page, deployed }) => byCount(deployed ? 1 : page),
  }),
  kind('cap-bytes-halved-mid-sweep', { world: { sizes: 'heavy' }, cap: bytesHalvedByDeploy }),
  ...(['even', 'lognormal'] as const).flatMap((sizes) =>
    (['hash', 'date', 'id'] as const).map((order) =>
      kind(`cap-bytes-halved-mid-sweep-${sizes}-by-${order}`, {
        world: { sizes, dates: 'shuffled' },
        order,
        cap: bytesHalvedByDeploy,
      }),
    ),
  ),
  kind('cap-bytes-random-above-half', {
    world: { sizes: 'eighths', dates: 'drafts-late' },
    order: 'date',
    cap: ({ pageBytes, draws }) => byBytes(pageBytes * (1 - draws.next() / 2)),
  }),
  kind('cap-smaller-when-fast', (draws) => {
    const fastMs = draws.logInt(20, 2000);
    return { cap: ({ page, gapMs }) => byCount(gapMs < fastMs ? half(page) : page) };
  }),
  kind('cap-alternates', { cap: ({ page, before }) => byCount(before % 2 === 0 ? page : half(page)) }),
  kind('cap-declines-to-half', { cap: ({ page, before }) => byCount(Math.max(half(page), page - before)) }),
  breaksCap('cap-declines-to-one', { leastPage: 4, cap: ({ page, before }) => byCount(Math.max(1, page - before)) }),
  kind('cap-smaller-for-narrow', (draws) => {
    const narrow = BigInt(draws.logInt(2, 1000));
    return {
      cap: ({ page, request: { afterId, beforeId } }) =>
        byCount(afterId !== null && beforeId !== null && beforeId - afterId < narrow ? half(page) : page),
    };
  }),
  breaksCap('cap-tiny-for-narrow', (draws) => {
    const narrow = BigInt(draws.logInt(10, 100_000));
    return {
      leastPage: 4,
      cap: ({ page, request: { afterId, beforeId } }) =>
        byCount(afterId !== null && beforeId !== null && beforeId - afterId < narrow ? 1 : page),
    };
  }),
  // Bytes are counted as stored: between half of those on the wire and all.
  kind('cap-by-stored-size', {
    world: { sizes: 'heavy', leastWeight: 0.5 },
    measure: (row) => row.bytes * row.weight,
    cap: byPageBytes,
  }),
  breaksCap('cap-by-stored-size-wide', {
    leastPage: 4,
    world: { sizes: 'even', leastWeight: 0.02 },
    order: 'hash',
    measure: (row) => row.bytes * row.weight ** 4,
    cap: ({ pageBytes }) => byBytes(pageBytes / 3),
  }),
  kind('cap-smaller-for-dates', { cap: ({ page, hasDates }) => byCount(hasDates ? half(page) : page) }),

  // Sizes of rows, in pages by bytes
  ...(['even', 'lognormal', 'eighths', 'thirds', 'halves', 'wholes'] as const).map((sizes) =>
    kind(`bytes-${sizes}`, { world: { sizes }, cap: byPageBytes }),
  ),
  breaksCap('bytes-heavy-by-date-shown-id', {
    world: { sizes: 'heavy', dates: 'shuffled' },
    order: 'date',
    shown: 'id',
    cap: byPageBytes,
  }),
  // Heavy tails, the smallest first, cut by bytes: what fills a quarter of a page comes last and is never shown beside others.
  breaksCap('bytes-heavy-by-size', { world: { sizes: 'heavy' }, order: 'size', cap: byPageBytes }),
  breaksCap('bytes-heavy-random', { world: { sizes: 'heavy' }, order: 'random', cap: byPageBytes }),
  breaksCap('bytes-halves-halved-mid-sweep-by-date', {
    world: { sizes: 'halves', dates: 'shuffled' },
    order: 'date-descending',
    shown: 'id',
    cap: bytesHalvedByDeploy,
  }),
  kind('bytes-by-shape', {
    world: { sizes: 'heavy' },
    cap: ({ pageBytes, idFilters }) => byBytes(idFilters === 2 ? half(pageBytes) : pageBytes),
  }),
  kind('count-or-bytes-by-shape', {
    world: { sizes: 'even' },
    leastPage: 4,
    nightFactors: [1],
    cap: ({ page, pageBytes, idFilters }) =>
      idFilters === 2 ? { ...byBytes(pageBytes), count: Math.ceil(page * 0.6) } : byBytes(pageBytes),
  }),

  // What takes a place in a page without being shown
  kind('tombstones-spaced', { leastPage: 2, world: { tombstones: 'spaced', dates: 'monotone' } }),
  breaksCap('tombstones-scattered', { world: { tombstones: 'scattered' } }),
  breaksCap('tombstones-runs', { world: { tombstones: 'runs' } }),
  // Deleted rows take places, and a page goes on until half of it shows.
  kind('tombstones-refilled', { world: { tombstones: 'runs' }, refills: true }),
  kind('tombstones-refilled-random', { world: { tombstones: 'scattered' }, order: 'random', refills: true }),
  // A join makes up to two of a row before the cap; the copies are merged after it.
  kind('join-two-merged', { world: { copiesUpTo: 2 } }),
  kind('join-two-repeated', { world: { copiesUpTo: 2 }, repeatsCopies: true }),
  breaksCap('join-many-merged', { leastPage: 3, world: { copiesUpTo: 6 } }),
  breaksList('one-per-person', { groups: 'after-filters' }),
  breaksList('one-per-person-ever', {
    groups: 'before-filters',
    couldShow: (row, _, rows) => !rows.some((other) => other.person === row.person && other.id > row.id),
  }),

  // A page is cut off first; withdrawn rows, in runs of 1 to 30 pages, are dropped from it afterwards.
  breaksCap('thinned-runs', { world: { tombstones: 'long-runs' } }),
  breaksCap('thinned-runs-descending', { world: { tombstones: 'long-runs' }, order: 'id-descending' }),
  breaksCap('thinned-by-hash', { world: { tombstones: 'long-runs' }, order: 'hash' }),

  // Failures, purges, and nothing instead of a list
  ...(['id', 'id-descending', 'hash'] as const).map((order) =>
    kind(`poison-500-by-${order}`, (draws) => ({ order, ...poisonous(draws, '500') })),
  ),
  kind('poison-broken-body', (draws) => ({
    world: { dates: 'shuffled' },
    order: 'date',
    ...poisonous(draws, 'broken'),
  })),
  kind('mass-deletion', { world: { purge: 0.1 } }),
  ...(
    [
      ['404', { emptyStatus: 404 }],
      ['204', { emptyStatus: 204 }],
      ['no-body', { emptyBody: true }],
    ] as const
  ).flatMap(([name, empty]) => [
    breaksList(`nothing-${name}-from-the-start`, { ...empty, hides: () => true }),
    breaksList(`nothing-${name}-after-a-night`, { ...empty, hides: (_, { nights }) => nights > 0 }),
    breaksList(`nothing-${name}-after-a-deploy`, { ...empty, hides: (_, { deployed }) => deployed }),
  ]),

  // Ids, dates and what happens during a sweep
  kind('late-commits', (draws) => ({
    world: {
      drafts: 0.25,
      eventEveryMs: draws.logInt(300, 10_000),
      mix: { arrival: 0.2, late: 0.7, deletion: 0.1, change: 0, return: 0 },
    },
  })),
  kind('drafts-old-dates', (draws) => ({
    world: { drafts: 0.2, lateDates: 'old', eventEveryMs: draws.logInt(500, 10_000) },
    order: 'date-descending',
  })),
  kind('ids-reused', (draws) => ({
    world: {
      reusesIds: true,
      eventEveryMs: draws.logInt(300, 10_000),
      mix: { arrival: 0.5, late: 0, deletion: 0.5, change: 0, return: 0 },
    },
  })),
  kind('imports-old-dates', { world: { dates: 'imports' }, order: 'date' }),
  kind('dates-shuffled', { world: { dates: 'shuffled' }, order: 'date' }),
  kind('dates-missing', { world: { dates: 'missing' } }),
  kind('dates-missing-match', { world: { dates: 'missing' }, undatedMatches: true, order: 'date-descending' }),
  kind('churn', (draws) => ({ world: { drafts: 0.15, eventEveryMs: draws.logInt(150, 600) } })),
  kind('deletions', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(200, 4000),
      mix: { arrival: 0.15, late: 0.05, deletion: 0.8, change: 0, return: 0 },
    },
  })),
  kind('deleted-return', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(200, 4000),
      mix: { arrival: 0.1, late: 0.1, deletion: 0.4, change: 0, return: 0.4 },
    },
  })),
  kind('ids-above-double', { world: { ids: 'above-double' } }),
  kind('ids-above-32-bit', { world: { ids: 'above-32-bit' } }),
  kind(
    'ids-unreadable',
    unreadableIds((id) => (id * 2_654_435_761n) % 1_000_003n < 50_000n),
  ),
  kind('ids-unreadable-runs', { ...unreadableIds((id) => (id / 1_000n) % 3n === 0n), order: 'hash' }),

  // Old copies and caches
  breaksList('replica-lags', (draws) => {
    const lagMs = draws.logInt(3000, 300_000);
    return { world: { eventEveryMs: 1500 }, viewAt: ({ atMs }) => atMs - lagMs };
  }),
  breaksList('replica-sticks', { viewAt: () => beginning }),
  breaksList('replica-round-robin', { viewAt: ({ atMs, before }) => (before % 2 === 0 ? atMs : beginning) }),
  breaksList('replica-by-chance', (draws) => {
    const lagMs = draws.logInt(5000, 300_000);
    return { world: { eventEveryMs: 1500 }, viewAt: ({ atMs, draws: own }) => (own.chance(0.3) ? atMs - lagMs : atMs) };
  }),
  breaksList('replica-for-two-filters', { viewAt: ({ atMs, idFilters }) => (idFilters === 2 ? beginning : atMs) }),
  ...[true, false].flatMap((tellsAge) =>
    (
      [
        ['minute', minuteMs],
        ['day', daySeconds * 1000],
      ] as const
    ).map(([name, forMs]) =>
      breaksList(`cache-${name}${tellsAge ? '-with-age' : ''}`, {
        world: { eventEveryMs: 1500 },
        cache: { key: urlOf, forMs, tellsAge, current: false },
      }),
    ),
  ),
  breaksList('cache-two-filters', {
    world: { eventEveryMs: 1500 },
    cache: { key: (ask) => (ask.idFilters === 2 ? urlOf(ask) : null), forMs: 600_000, tellsAge: false, current: false },
  }),
  breaksList('cache-unfiltered', {
    world: { eventEveryMs: 1500 },
    cache: {
      key: (ask) => (ask.idFilters === 0 && !ask.hasDates ? 'all' : null),
      forMs: 600_000,
      tellsAge: false,
      current: false,
    },
  }),
  breaksList('cache-by-lower-bound', {
    cache: { key: ({ request }) => String(request.afterId), forMs: minuteMs, tellsAge: false, current: false },
  }),
  kind('cache-always-current', {
    nightFactors: [1],
    cache: { key: urlOf, forMs: daySeconds * 1000, tellsAge: true, current: true },
  }),
  breaksList('fresh-rows-hidden', {
    world: { eventEveryMs: 1500 },
    hides: (row, { atMs }) => row.spans.some((span) => span.from > atMs - 10_000),
  }),

  // Rows that some answers leave out
  breaksList('false-empties', { trims: (rows, { draws }) => (draws.chance(0.02) ? [] : rows) }),
  breaksList('false-empties-two-filters', {
    trims: (rows, { draws, idFilters }) => (idFilters === 2 && draws.chance(0.04) ? [] : rows),
  }),
  breaksList('shard-missing', {
    hides: (row, { before }) => isUnlucky(before) && Math.floor(row.hash * 4) === before % 4,
  }),
  breaksList('shard-missing-two-filters', { hides: (row, { idFilters }) => idFilters === 2 && row.hash < 0.25 }),
  breaksList('shard-missing-mid-sweep', { hides: (row, { deployed }) => deployed && row.hash < 0.2 }),
  breaksList('hidden-from-narrow', {
    order: 'id-descending',
    hides: (row, { idFilters }) => idFilters === 2 && row.score < 4,
  }),
  breaksList('hidden-job', { hides: (row, { hasDates }) => !hasDates && row.job < 2 }),
  breaksList('default-window', {
    hides: (row, { hasDates, now }) => !hasDates && (row.submittedAt ?? now) < now - 90 * daySeconds,
  }),
  breaksList('default-window-without-lower-bound', {
    order: 'id-descending',
    hides: (row, { request, now }) =>
      request.afterId === null && request.afterDate === null && (row.submittedAt ?? now) < now - 30 * daySeconds,
  }),
  breaksList('proxy-drops-last', (draws) => {
    const dropped = draws.int(1, 3);
    return { trims: (rows) => rows.slice(0, Math.max(0, rows.length - dropped)) };
  }),
  breaksList('proxy-drops-some', { trims: (rows, { draws }) => rows.filter(() => !draws.chance(0.005)) }),
  breaksList('ids-shown-as-double', {
    world: { ids: 'above-double' },
    shows: (row) => ({ ...row, id: BigInt(Number(row.id)) }),
    couldShow: (row) => BigInt(Number(row.id)) === row.id,
  }),

  // Filters that are compared, staged or combined otherwise
  breaksFilters('ids-compared-as-text', { world: { ids: 'digits' }, compareIds: compareText, order: 'id-text' }),
  breaksFilters('ids-compared-as-double', {
    world: { ids: 'above-double' },
    compareIds: (id, bound) => Number(id) - Number(bound),
  }),
  breaksFilters('bounds-overflow-32-bit', {
    world: { ids: 'above-32-bit' },
    rewrite: (request) => ({
      ...request,
      afterId: request.afterId === null ? null : BigInt.asIntN(32, request.afterId),
      beforeId: request.beforeId === null ? null : BigInt.asIntN(32, request.beforeId),
    }),
  }),
  breaksFilters('bounds-clamped', {
    world: { ids: 'above-32-bit' },
    rewrite: (request) => clampTo(request, 2_147_483_647n),
  }),
  breaksFilters('range-clamped', (draws) => {
    const widest = BigInt(draws.logInt(20, 1000));
    return {
      rewrite: (request) => {
        const { afterId, beforeId } = request;
        const isWide = afterId !== null && beforeId !== null && beforeId - afterId > widest;
        return isWide ? { ...request, beforeId: afterId + widest } : request;
      },
    };
  }),
  breaksFilters('after-id-after-cap', { stage: only('after-cap', 'afterId') }),
  breaksFilters('before-id-after-cap-by-hash', { order: 'hash', stage: only('after-cap', 'beforeId') }),
  breaksFilters('both-ids-after-cap', { stage: only('after-cap', 'afterId', 'beforeId') }),
  breaksFilters('both-ids-after-cap-if-two', {
    order: 'id-descending',
    stage: (filter, { idFilters }) =>
      idFilters === 2 && (filter === 'afterId' || filter === 'beforeId') ? 'after-cap' : 'before-cap',
  }),
  breaksFilters('filters-after-cap-mid-sweep', {
    world: { dates: 'shuffled' },
    order: 'date',
    stage: (filter, { deployed }) => (deployed && filter === 'beforeId' ? 'after-cap' : 'before-cap'),
  }),
  kind('dates-after-cap', { stage: only('after-cap', 'afterDate', 'beforeDate') }),
  breaksFilters('dates-before-ids-after-cap', {
    order: 'date-descending',
    stage: (filter) => (filter === 'afterDate' || filter === 'beforeDate' ? 'before-cap' : 'after-cap'),
  }),
  kind('dates-ignored', { stage: only('never', 'afterDate', 'beforeDate') }),
  kind('dates-ignored-with-ids', {
    stage: (filter, { idFilters }) =>
      idFilters > 0 && (filter === 'afterDate' || filter === 'beforeDate') ? 'never' : 'before-cap',
  }),
  breaksFilters('prefetch-limited', { order: 'id-descending', prefetch: ({ page }) => page * 3 }),
  breaksFilters('combine-or', { combine: 'or' }),
  breaksFilters('combine-or-volatile', {
    combine: 'or',
    order: 'hash',
    trims: (rows, { draws }) => rows.map((row) => ({ ...row, bytes: row.bytes + draws.int(0, 40) })),
  }),
  breaksFilters('combine-after-wins', { combine: 'after-wins' }),
  breaksFilters('combine-before-wins', { combine: 'before-wins' }),
  kind('combine-refused', { refuses: twoIdFilters }),
  kind('dates-refused', { refuses: ({ hasDates }) => (hasDates ? 400 : null) }),
  breaksFilters('after-id-ignored', { stage: only('never', 'afterId') }),
  breaksFilters('before-id-ignored', { stage: only('never', 'beforeId') }),
  breaksFilters('all-filters-ignored', { stage: () => 'never' }),

  // Bounds, empty answers, echoes, zones
  kind('inclusive-after', { inclusive: (filter) => filter === 'afterId' || filter === 'afterDate' }),
  kind('inclusive-before', { inclusive: (filter) => filter === 'beforeId' || filter === 'beforeDate' }),
  kind('inclusive-both', { inclusive: () => true }),
  kind('inclusive-per-shape', (draws) => ({ inclusive: drawInclusive(draws) })),
  kind('inclusive-per-shape-cap-per-shape', (draws) => {
    const inclusive = drawInclusive(draws);
    const parts = draws.shuffle([1, 0.5, draws.between(0.5, 1)]);
    const order = draws.pick(['id', 'id-descending'] as const);
    return {
      inclusive,
      cap: ({ page, idFilters }) => byCount(Math.ceil(page * (parts[idFilters] ?? 1))),
      order,
    };
  }),
  kind('inclusive-mid-sweep', (draws) => {
    const first = draws.chance(0.5);
    // When the bound alone fills a page, a poll cannot detect that the next id was left out (see docs/coverage.md).
    return { leastPage: 3, inclusive: (_, { deployed }) => deployed === first };
  }),
  kind('inclusive-by-chance', {
    // When the bound alone fills a page, a poll cannot detect that the next id was left out (see docs/coverage.md).
    leastPage: 3,
    inclusive: (_, { draws }) => draws.chance(0.5),
  }),
  kind('empty-204', { emptyStatus: 204 }),
  kind('empty-404', { emptyStatus: 404 }),
  kind('echo-absent', { echo: () => 'absent' }),
  kind('echo-differs', { echo: () => 'differs' }),
  kind('echo-differs-for-two', { echo: ({ idFilters }) => (idFilters === 2 ? 'differs' : 'matches') }),
  kind('zone-utc', { dateShift: () => 36_000 }),
  kind('zone-melbourne', { dateShift: (seconds) => (isSummer(seconds) ? -3600 : 0) }),
  kind('dates-cut-to-the-day', { dateShift: (seconds) => -(seconds % daySeconds) }),
  kind('clock-skewed', (draws) => {
    const skew = draws.logInt(30, 7200) * (draws.chance(0.5) ? 1 : -1);
    return { shows: (row) => ({ ...row, submittedAt: row.submittedAt === null ? null : row.submittedAt + skew }) };
  }),
  kind('forbidden-when-fast', (draws) => {
    const fastMs = draws.logInt(20, 500);
    return { refuses: ({ gapMs, draws: own }) => (gapMs < fastMs && own.chance(0.3) ? 403 : null) };
  }),

  // Combinations
  breaksCap('mix-tombstones-refilled-halved', {
    leastPage: 4,
    world: { tombstones: 'scattered' },
    refills: true,
    cap: halvedByDeploy,
  }),
  breaksCap('mix-join-two-by-shape', {
    leastPage: 4,
    world: { copiesUpTo: 2 },
    cap: ({ page, idFilters }) => byCount(idFilters === 2 ? half(page) : page),
  }),
  kind('mix-random-churn-inclusive', (draws) => ({
    world: { drafts: 0.15, eventEveryMs: draws.logInt(150, 2000) },
    order: 'random',
    inclusive: () => true,
    cap: ({ page, draws: own }) => byCount(own.int(Math.floor(page / 2) + 1, page)),
  })),
  breaksCap('mix-bytes-heavy-churn-by-date', (draws) => ({
    world: { drafts: 0.2, dates: 'shuffled', sizes: 'heavy', eventEveryMs: draws.logInt(150, 2000) },
    order: 'date',
    shown: 'id',
    cap: byPageBytes,
  })),
  kind('mix-halved-flipped-mid-sweep', {
    order: ({ deployed }) => (deployed ? 'id' : 'id-descending'),
    inclusive: (_, { deployed }) => deployed,
    cap: halvedByDeploy,
  }),
  kind('mix-order-modified-returns', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(150, 2000),
      mix: { arrival: 0.1, late: 0.1, deletion: 0.2, change: 0.4, return: 0.2 },
    },
    order: 'modified',
  })),
  kind('mix-404-inclusive-descending', {
    emptyStatus: 404,
    inclusive: () => true,
    order: 'id-descending',
    echo: () => 'absent',
  }),
  kindThatBreaks('oneCurrentList', 'capAboveHalf')('mix-stale-capped', {
    leastPage: 3,
    viewAt: ({ atMs, before }) => (before % 2 === 0 ? atMs : beginning),
    cap: ({ page, before }) => byCount(before % 2 === 0 ? page : third(page)),
  }),
  kindThatBreaks(
    'filtersBeforeCap',
    'capAboveHalf',
    'oneCurrentList',
  )('mix-all-broken', {
    leastPage: 3,
    groups: 'after-filters',
    order: 'date',
    stage: only('after-cap', 'beforeId'),
    cap: ({ page, deployed }) => byCount(deployed ? third(page) : page),
    cache: { key: urlOf, forMs: minuteMs, tellsAge: false, current: false },
  }),
  kind('mix-cap-by-shape-inclusive-deleted', (draws) => ({
    leastPage: 2,
    world: { tombstones: 'spaced', dates: 'monotone' },
    order: ({ idFilters }) => (idFilters === 1 ? 'id-descending' : 'id'),
    inclusive: drawInclusive(draws),
  })),
];

export function kindNamed(name: string): Kind {
  const found = kinds.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no kind ${name}.`);
  return found;
}
