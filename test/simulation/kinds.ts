// The kinds of hidden servers.
//
// To add a kind, add a `kind(name, keeps, about, traits)` to a list below. `traits` is only what differs from the friendly server (see
// Traits in hidden-server.ts), or a function that gets its own random draws. `keeps` lists the assumptions that the kind keeps in every seed:
// `keepsAll`, or `breaks(...)` with the assumptions that it may break in some seed.
//   filtersBeforeCap: the server applies both id filters, as numbers, before it cuts off a page.
//   capAboveHalf:     the rows (or bytes) at which it cuts off questions by id stay within [M/2, M] from one night to the next.
//   oneCurrentList:   every answer comes from one list, as it is at that moment.
// The unit tests check these claims from outside: a kind with `keepsAll` must keep every assumption, a kind that breaks one must show
// it in some seed, and each kind must answer differently from the friendly server in some seed.
// Equal questions get equal answers unless the kind is a `kindByChance`.
import type { Draws } from './draws.ts';
import {
  type Ask,
  type Cap,
  compareText,
  createServer,
  type Keeps,
  type Kind,
  type ListRequest,
  type Traits,
  unlimited,
} from './hidden-server.ts';
import { beginning } from './world.ts';

const keepsAll: Keeps = { filtersBeforeCap: true, capAboveHalf: true, oneCurrentList: true };

function breaks(...broken: readonly (keyof Keeps)[]): Keeps {
  return { ...keepsAll, ...Object.fromEntries(broken.map((name) => [name, false])) };
}

function kind(name: string, keeps: Keeps, about: string, traits: Traits | ((draws: Draws) => Traits)): Kind {
  const toTraits = typeof traits === 'function' ? traits : () => traits;
  const create: Kind['create'] = (seed, options = {}) => createServer(name, seed, options, toTraits);
  return { name, keeps, about, repeats: true, create };
}

function kindByChance(...of: Parameters<typeof kind>): Kind {
  return { ...kind(...of), repeats: false };
}

const minuteMs = 60_000;
const daySeconds = 86_400;

const half = (count: number) => Math.ceil(count / 2);
const third = (count: number) => Math.max(1, Math.floor(count / 3));
const byCount = (count: number): Cap => ({ ...unlimited, count });
const byBytes = (bytes: number): Cap => ({ ...unlimited, bytes });
const urlOf = ({ request }: Ask) =>
  [request.afterId, request.beforeId, request.afterDate, request.beforeDate].map(String).join('&');

const inOrders: readonly Kind[] = [
  kind('friendly', keepsAll, 'Ascending by id, bounds excluded, one constant cap by count.', {}),
  kind('order-id-descending', keepsAll, 'The newest ids come first.', { order: 'id-descending' }),
  kind('order-date', keepsAll, 'Ascending by date, while dates do not follow ids.', {
    world: { dates: 'drafts-late' },
    order: 'date',
  }),
  kind('order-date-descending', keepsAll, 'Descending by date, while dates do not follow ids.', {
    world: { dates: 'drafts-late' },
    order: 'date-descending',
  }),
  kind('order-day-then-id-descending', keepsAll, 'By day, and descending by id within a day.', {
    order: 'day-then-id-descending',
  }),
  kind('order-score', keepsAll, 'The best scores come first.', { order: 'score' }),
  kind('order-hash', keepsAll, 'By a hash of the row.', { order: 'hash' }),
  kind('order-job', keepsAll, 'Job by job.', { order: 'job' }),
  kind('order-person', keepsAll, 'Person by person.', { order: 'person' }),
  kind('order-size', keepsAll, 'The smallest rows come first.', { order: 'size' }),
  kind('order-commit', keepsAll, 'In the order of commits, as a heap without an index gives it.', {
    world: { drafts: 0.2 },
    order: 'commit',
  }),
  kind('order-modified', keepsAll, 'The last changed come first, and rows change during a sweep.', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(300, 8000),
      mix: { arrival: 0.2, late: 0.1, deletion: 0.1, change: 0.6, return: 0 },
    },
    order: 'modified',
  })),
  kind('order-id-text', keepsAll, 'Sorted by the text of the id, while filters compare numbers.', {
    world: { ids: 'digits' },
    order: 'id-text',
  }),
  kindByChance('order-random', keepsAll, 'A new random order for each request.', { order: 'random' }),
  kindByChance('order-date-random-ties', keepsAll, 'By date, and rows of one date in a random order each time.', {
    world: { dates: 'ties' },
    order: 'date-random-ties',
  }),
  kind('order-flips-mid-sweep', keepsAll, 'A deploy during the sweep reverses the order.', {
    order: ({ deployed }) => (deployed ? 'id-descending' : 'id'),
  }),
  kind('order-date-to-id-mid-sweep', keepsAll, 'A deploy during the sweep changes the order from date to id.', {
    world: { dates: 'shuffled' },
    order: ({ deployed }) => (deployed ? 'id' : 'date-descending'),
  }),
  kind('order-per-shape', keepsAll, 'The order depends on how many id filters are sent.', (draws) => {
    const orders = draws.shuffle(['id', 'id-descending', 'date', 'hash'] as const);
    return { order: ({ idFilters }) => orders[idFilters] ?? 'id' };
  }),
  kind('order-per-direction', keepsAll, 'A lower bound gives ascending ids, none gives descending ids.', {
    order: ({ request }) => (request.afterId === null ? 'id-descending' : 'id'),
  }),
  kind('chosen-date-shown-id', keepsAll, 'The first by date are chosen and shown by id.', {
    world: { dates: 'drafts-late' },
    order: 'date',
    shown: 'id',
  }),
  kind('chosen-date-descending-shown-id', keepsAll, 'The newest by date are chosen and shown by id.', {
    world: { dates: 'imports' },
    order: 'date-descending',
    shown: 'id',
  }),
  kind('chosen-id-descending-shown-id', keepsAll, 'The highest ids are chosen and shown in ascending order.', {
    order: 'id-descending',
    shown: 'id',
  }),
  kind('chosen-id-shown-id-descending', keepsAll, 'The lowest ids are chosen and shown in descending order.', {
    order: 'id',
    shown: 'id-descending',
  }),
  kind('chosen-hash-shown-id', keepsAll, 'A sample by hash is chosen and shown by id.', {
    order: 'hash',
    shown: 'id',
  }),
  kindByChance('chosen-random-shown-id', keepsAll, 'A random sample is chosen each time and shown by id.', {
    order: 'random',
    shown: 'id',
  }),
  kindByChance('chosen-id-shown-random', keepsAll, 'The lowest ids are chosen and shown in a random order.', {
    shown: 'random',
  }),
];

const inCaps: readonly Kind[] = [
  kind('cap-none', keepsAll, 'Each answer shows everything that matches.', { cap: () => unlimited }),
  kind('cap-one', keepsAll, 'A page holds one row.', { page: 1, nightFactors: [1] }),
  kind('cap-two', keepsAll, 'A page holds two rows.', { page: 2, nightFactors: [1] }),
  kind('cap-seven-descending', keepsAll, 'A page holds seven rows, the newest first.', {
    page: 7,
    nightFactors: [1],
    order: 'id-descending',
  }),
  kindByChance('cap-one-random', keepsAll, 'A page holds one row that is drawn anew each time.', {
    page: 1,
    nightFactors: [1],
    order: 'random',
  }),
  kind('cap-bytes-stops-before', keepsAll, 'A page ends before the row that would overflow its bytes.', {
    world: { sizes: 'heavy' },
    cap: ({ pageBytes }) => byBytes(pageBytes),
  }),
  kind('cap-bytes-stops-after', keepsAll, 'A page ends after the row that overflows its bytes.', {
    world: { sizes: 'heavy' },
    cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), overflow: 'after' }),
  }),
  kind('cap-bytes-may-show-none', keepsAll, 'A page by bytes guarantees no first row, and each row fits alone.', {
    world: { sizes: 'wholes' },
    nightFactors: [1, 1, 2],
    cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), atLeastOne: false }),
  }),
  kind(
    'cap-bytes-blocked-by-giant',
    breaks('capAboveHalf'),
    'Rows above the byte cap show in no answer, and a page ends before them, so it may be empty though rows follow.',
    {
      world: { sizes: 'oversized' },
      nightFactors: [1],
      cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), atLeastOne: false }),
      couldShow: (row, pageBytes) => row.bytes <= pageBytes,
    },
  ),
  kind('cap-bytes-giant-shows-alone', keepsAll, 'Rows above the byte cap show alone.', {
    world: { sizes: 'oversized' },
    cap: ({ pageBytes }) => byBytes(pageBytes),
    order: 'id-descending',
  }),
  kind('cap-count-and-bytes', keepsAll, 'A page ends at its count or at its bytes, whichever comes first.', {
    world: { sizes: 'heavy' },
    cap: ({ page, pageBytes }) => ({ ...byBytes(pageBytes), count: page }),
  }),
  kindByChance('cap-random-above-half', keepsAll, 'Each answer has a cap of its own, above half of the largest.', {
    cap: ({ page, draws }) => byCount(draws.int(Math.floor(page / 2) + 1, page)),
  }),
  kindByChance('cap-random-above-half-random-order', keepsAll, 'Cap and order are drawn anew for each answer.', {
    order: 'random',
    cap: ({ page, draws }) => byCount(draws.int(Math.floor(page / 2) + 1, page)),
  }),
  kindByChance('cap-random-half-or-whole', keepsAll, 'Each answer holds either a whole page or exactly half.', {
    order: 'date-descending',
    world: { dates: 'shuffled' },
    cap: ({ page, draws }) => byCount(draws.chance(0.5) ? page : half(page)),
  }),
  kindByChance('cap-random-below-half', breaks('capAboveHalf'), 'Each answer has a cap anywhere from one row up.', {
    leastPage: 4,
    cap: ({ page, draws }) => byCount(draws.int(1, page)),
  }),
  kind(
    'cap-by-shape-within-half',
    keepsAll,
    'One, two and no id filter have caps of their own, none below half.',
    (draws) => {
      const parts = draws.shuffle([1, 0.5, draws.between(0.5, 1)]);
      return { cap: ({ page, idFilters }) => byCount(Math.ceil(page * (parts[idFilters] ?? 1))) };
    },
  ),
  kind('cap-by-shape-beyond-half', breaks('capAboveHalf'), 'Questions with two id filters show a fifth of a page.', {
    leastPage: 5,
    cap: ({ page, idFilters }) => byCount(idFilters === 2 ? Math.floor(page / 5) : page),
  }),
  kind('cap-by-shape-large-for-two', breaks('capAboveHalf'), 'Questions with fewer than two id filters show a third.', {
    leastPage: 3,
    cap: ({ page, idFilters }) => byCount(idFilters === 2 ? page : third(page)),
  }),
  kind('cap-halved-mid-sweep', keepsAll, 'A deploy during the sweep halves the cap exactly, once.', {
    cap: ({ page, deployed }) => byCount(deployed ? half(page) : page),
  }),
  kind('cap-halved-mid-sweep-descending', keepsAll, 'Descending by id, and a deploy halves the cap exactly, once.', {
    order: 'id-descending',
    cap: ({ page, deployed }) => byCount(deployed ? half(page) : page),
  }),
  kind('cap-doubled-mid-sweep', keepsAll, 'A deploy during the sweep doubles the cap, once.', {
    order: 'id-descending',
    cap: ({ page, deployed }) => byCount(deployed ? page * 2 : page),
  }),
  kind('cap-third-mid-sweep', breaks('capAboveHalf'), 'A deploy during the sweep leaves a third of the cap.', {
    leastPage: 3,
    cap: ({ page, deployed }) => byCount(deployed ? third(page) : page),
  }),
  kind('cap-one-row-mid-sweep', breaks('capAboveHalf'), 'A deploy during the sweep leaves one row per page.', {
    leastPage: 3,
    order: 'id-descending',
    cap: ({ page, deployed }) => byCount(deployed ? 1 : page),
  }),
  kind('cap-bytes-halved-mid-sweep', keepsAll, 'A deploy during the sweep halves the bytes of a page exactly.', {
    world: { sizes: 'heavy' },
    cap: ({ pageBytes, deployed }) => byBytes(deployed ? half(pageBytes) : pageBytes),
  }),
  kind('cap-bytes-tenth-mid-sweep', breaks('capAboveHalf'), 'A deploy during the sweep leaves a tenth of the bytes.', {
    leastPage: 10,
    cap: ({ pageBytes, deployed }) => byBytes(deployed ? pageBytes / 10 : pageBytes),
  }),
  ...(['even', 'lognormal'] as const).flatMap((sizes) =>
    (['hash', 'date', 'id'] as const).map((order) =>
      kind(
        `cap-bytes-halved-mid-sweep-${sizes}-by-${order}`,
        keepsAll,
        `A deploy halves the bytes of a page; sizes are ${sizes}, the order is that of ${order}.`,
        {
          world: { sizes, dates: 'shuffled' },
          order: order,
          cap: ({ pageBytes, deployed }) => byBytes(deployed ? half(pageBytes) : pageBytes),
        },
      ),
    ),
  ),
  kindByChance('cap-bytes-random-above-half', keepsAll, 'The bytes of a page are drawn for each answer, above half.', {
    world: { sizes: 'eighths', dates: 'drafts-late' },
    order: 'date',
    cap: ({ pageBytes, draws }) => byBytes(pageBytes * (1 - draws.next() / 2)),
  }),
  kindByChance(
    'cap-smaller-when-fast',
    keepsAll,
    'A question that comes soon after another gets half a page.',
    (draws) => {
      const fastMs = draws.logInt(20, 2000);
      return { cap: ({ page, gapMs }) => byCount(gapMs < fastMs ? half(page) : page) };
    },
  ),
  kindByChance(
    'cap-much-smaller-when-fast',
    breaks('capAboveHalf'),
    'A question that comes soon after another gets a third of a page.',
    (draws) => {
      const fastMs = draws.logInt(20, 2000);
      return { leastPage: 3, cap: ({ page, gapMs }) => byCount(gapMs < fastMs ? third(page) : page) };
    },
  ),
  kindByChance('cap-alternates', keepsAll, 'Two servers alternate; one has half the cap of the other.', {
    cap: ({ page, before }) => byCount(before % 2 === 0 ? page : half(page)),
  }),
  kindByChance('cap-declines-to-half', keepsAll, 'Each question lowers the cap by one row, down to half.', {
    cap: ({ page, before }) => byCount(Math.max(half(page), page - before)),
  }),
  kindByChance('cap-declines-to-one', breaks('capAboveHalf'), 'Each question lowers the cap by one row, down to one.', {
    leastPage: 4,
    cap: ({ page, before }) => byCount(Math.max(1, page - before)),
  }),
  kind(
    'cap-smaller-for-old-ids',
    keepsAll,
    'Questions that begin below an id that the seed chooses get half a page.',
    (draws) => {
      const from = BigInt(draws.logInt(1, 2_000_000_000));
      return { cap: ({ page, request }) => byCount((request.afterId ?? 0n) < from ? half(page) : page) };
    },
  ),
  kind('cap-smaller-for-narrow', keepsAll, 'Questions about a narrow range of ids get half a page.', (draws) => {
    const narrow = BigInt(draws.logInt(2, 1000));
    return {
      cap: ({ page, request: { afterId, beforeId } }) =>
        byCount(afterId !== null && beforeId !== null && beforeId - afterId < narrow ? half(page) : page),
    };
  }),
  kind('cap-tiny-for-narrow', breaks('capAboveHalf'), 'Questions about a narrow range of ids get one row.', (draws) => {
    const narrow = BigInt(draws.logInt(10, 100_000));
    return {
      leastPage: 4,
      cap: ({ page, request: { afterId, beforeId } }) =>
        byCount(afterId !== null && beforeId !== null && beforeId - afterId < narrow ? 1 : page),
    };
  }),
  kind('cap-by-stored-size', keepsAll, 'Bytes are counted as stored: between half of those on the wire and all.', {
    world: { sizes: 'heavy', leastWeight: 0.5 },
    measure: (row) => row.bytes * row.weight,
    cap: ({ pageBytes }) => byBytes(pageBytes),
  }),
  kind(
    'cap-by-stored-size-wide',
    breaks('capAboveHalf'),
    'Bytes are counted as stored: between almost none of those on the wire and all.',
    {
      leastPage: 4,
      world: { sizes: 'even', leastWeight: 0.02 },
      order: 'hash',
      measure: (row) => row.bytes * row.weight ** 4,
      cap: ({ pageBytes }) => byBytes(pageBytes / 3),
    },
  ),
  kind('cap-smaller-for-dates', keepsAll, 'Questions by date get half a page.', {
    cap: ({ page, hasDates }) => byCount(hasDates ? half(page) : page),
  }),
];

const inSizes: readonly Kind[] = [
  ...(['even', 'lognormal', 'eighths', 'thirds', 'halves', 'wholes'] as const).map((sizes) =>
    kind(`bytes-${sizes}`, keepsAll, `A page by bytes, and sizes that are ${sizes} of it or of a row.`, {
      world: { sizes },
      cap: ({ pageBytes }) => byBytes(pageBytes),
    }),
  ),
  kind('bytes-wholes-stops-after-descending', keepsAll, 'Giants of a page, the newest ids first, stopped after.', {
    world: { sizes: 'wholes' },
    order: 'id-descending',
    cap: ({ pageBytes }) => ({ ...byBytes(pageBytes), overflow: 'after' }),
  }),
  kind(
    'bytes-heavy-by-date-shown-id',
    breaks('capAboveHalf'),
    'Heavy tails, chosen by date, shown by id, cut by bytes.',
    {
      world: { sizes: 'heavy', dates: 'shuffled' },
      order: 'date',
      shown: 'id',
      cap: ({ pageBytes }) => byBytes(pageBytes),
    },
  ),
  kind(
    'bytes-heavy-by-size',
    breaks('capAboveHalf'),
    'Heavy tails, the smallest first, cut by bytes: what fills a quarter of a page comes last and is never shown beside others.',
    {
      world: { sizes: 'heavy' },
      order: 'size',
      cap: ({ pageBytes }) => byBytes(pageBytes),
    },
  ),
  kind('bytes-eighths-by-date', keepsAll, 'Rows of up to an eighth of a page, by date, cut by bytes.', {
    world: { sizes: 'eighths', dates: 'shuffled' },
    order: 'date',
    cap: ({ pageBytes }) => byBytes(pageBytes),
  }),
  kind('bytes-lognormal-by-date', keepsAll, 'Sizes of one order of magnitude, by date, cut by bytes.', {
    world: { sizes: 'lognormal', dates: 'drafts-late' },
    order: 'date-descending',
    cap: ({ pageBytes }) => byBytes(pageBytes),
  }),
  kind('bytes-lognormal-by-hash', keepsAll, 'Sizes of one order of magnitude, without order, cut by bytes.', {
    world: { sizes: 'lognormal' },
    order: 'hash',
    cap: ({ pageBytes }) => byBytes(pageBytes),
  }),
  kindByChance('bytes-heavy-random', breaks('capAboveHalf'), 'Heavy tails in a random order, cut by bytes.', {
    world: { sizes: 'heavy' },
    order: 'random',
    cap: ({ pageBytes }) => byBytes(pageBytes),
  }),
  kind(
    'bytes-halves-halved-mid-sweep-by-date',
    breaks('capAboveHalf'),
    'Rows of half a page, by date, and a deploy halves the bytes.',
    {
      world: { sizes: 'halves', dates: 'shuffled' },
      order: 'date-descending',
      shown: 'id',
      cap: ({ pageBytes, deployed }) => byBytes(deployed ? half(pageBytes) : pageBytes),
    },
  ),
  kind('bytes-by-shape', keepsAll, 'Two id filters get half the bytes of a page.', {
    world: { sizes: 'heavy' },
    cap: ({ pageBytes, idFilters }) => byBytes(idFilters === 2 ? half(pageBytes) : pageBytes),
  }),
  kind(
    'count-or-bytes-by-shape',
    keepsAll,
    'Two id filters are cut by count and bytes, others by bytes, within half.',
    {
      world: { sizes: 'even' },
      leastPage: 4,
      nightFactors: [1],
      cap: ({ page, pageBytes, idFilters }) =>
        idFilters === 2 ? { ...byBytes(pageBytes), count: Math.ceil(page * 0.6) } : byBytes(pageBytes),
    },
  ),
];

const inPlaces: readonly Kind[] = [
  kind('tombstones-spaced', keepsAll, 'One place in four, at most, is that of a deleted row, in the order of ids.', {
    leastPage: 2,
    world: { tombstones: 'spaced', dates: 'monotone' },
  }),
  kind('tombstones-spaced-descending', keepsAll, 'Spaced deleted rows take places, the newest ids first.', {
    leastPage: 2,
    world: { tombstones: 'spaced', dates: 'monotone' },
    order: 'id-descending',
  }),
  kind('tombstones-scattered', breaks('capAboveHalf'), 'Deleted rows take 5 to 30 % of all places, by chance.', {
    world: { tombstones: 'scattered' },
  }),
  kind('tombstones-scattered-by-date', breaks('capAboveHalf'), 'Deleted rows take places in the order of dates.', {
    world: { tombstones: 'scattered', dates: 'shuffled' },
    order: 'date',
  }),
  kind('tombstones-runs', breaks('capAboveHalf'), 'Deleted rows take runs of places, up to whole pages.', {
    world: { tombstones: 'runs' },
  }),
  kind(
    'tombstones-runs-by-date-shown-id',
    breaks('capAboveHalf'),
    'Runs of deleted rows, chosen by date, shown by id.',
    {
      world: { tombstones: 'runs', dates: 'drafts-late' },
      order: 'date',
      shown: 'id',
    },
  ),
  kind('tombstones-refilled', keepsAll, 'Deleted rows take places, and a page goes on until half of it shows.', {
    world: { tombstones: 'runs' },
    refills: true,
  }),
  kind('tombstones-refilled-by-date', keepsAll, 'Scattered deleted rows, by date, refilled up to half.', {
    world: { tombstones: 'scattered', dates: 'shuffled' },
    order: 'date-descending',
    refills: true,
  }),
  kindByChance(
    'tombstones-refilled-random',
    keepsAll,
    'Scattered deleted rows in a random order, refilled up to half.',
    {
      world: { tombstones: 'scattered' },
      order: 'random',
      refills: true,
    },
  ),
  kind('join-two-merged', keepsAll, 'A join makes up to two of a row before the cap; the copies are merged after it.', {
    world: { copiesUpTo: 2 },
  }),
  kind('join-two-repeated', keepsAll, 'A join makes up to two of a row before the cap, and both are shown.', {
    world: { copiesUpTo: 2 },
    repeatsCopies: true,
  }),
  kind('join-two-repeated-by-date', keepsAll, 'Copies are shown, in the order of dates, newest first.', {
    world: { copiesUpTo: 2, dates: 'shuffled' },
    order: 'date-descending',
    repeatsCopies: true,
  }),
  kind('join-many-merged', breaks('capAboveHalf'), 'A join makes up to six of a row; the copies are merged.', {
    leastPage: 3,
    world: { copiesUpTo: 6 },
  }),
  kind('join-many-repeated', breaks('capAboveHalf'), 'A join makes up to six of a row, and all are shown.', {
    leastPage: 3,
    world: { copiesUpTo: 6 },
    repeatsCopies: true,
  }),
  kind('one-per-person', breaks('oneCurrentList'), 'Of each person only the newest row that matches is shown.', {
    groups: 'after-filters',
  }),
  kind('one-per-person-ever', breaks('oneCurrentList'), 'Of each person only the newest row exists for any question.', {
    groups: 'before-filters',
    couldShow: (row, _, rows) => !rows.some((other) => other.person === row.person && other.id > row.id),
  }),
];

const inThinning: readonly Kind[] = [
  kind(
    'thinned-runs',
    breaks('capAboveHalf'),
    'A page is cut off first; withdrawn rows, in runs of 1 to 30 pages, are dropped from it afterwards.',
    { world: { tombstones: 'long-runs' } },
  ),
  kind(
    'thinned-runs-descending',
    breaks('capAboveHalf'),
    'Runs of 1 to 30 pages are dropped after the cut, the newest ids first.',
    { world: { tombstones: 'long-runs' }, order: 'id-descending' },
  ),
  kind(
    'thinned-runs-by-date',
    breaks('capAboveHalf'),
    'Runs of 1 to 30 pages are dropped after the cut, in the order of dates that do not follow ids.',
    { world: { tombstones: 'long-runs', dates: 'drafts-late' }, order: 'date' },
  ),
  kind(
    'thinned-by-hash',
    breaks('capAboveHalf'),
    'Most rows are withdrawn, lie anywhere, and are dropped after the cut.',
    { world: { tombstones: 'long-runs' }, order: 'hash' },
  ),
];

const inFailures: readonly Kind[] = [
  ...(['id', 'id-descending', 'hash'] as const).map((order) =>
    kind(
      `poison-500-by-${order}`,
      keepsAll,
      `Answers that would show one of a few applications are 500, in the order of ${order}.`,
      (draws) => ({ order: order, ...poisonous(draws, '500') }),
    ),
  ),
  kind('poison-broken-body', keepsAll, 'Answers that would show one of a few applications do not parse.', (draws) => ({
    world: { dates: 'shuffled' },
    order: 'date',
    ...poisonous(draws, 'broken'),
  })),
  kind('mass-deletion', keepsAll, 'A night deletes a tenth of the list or more at once.', { world: { purge: 0.1 } }),
  kind('mass-deletion-by-hash', keepsAll, 'A night deletes a tenth or more of a list without order.', {
    world: { purge: 0.1 },
    order: 'hash',
  }),
  ...(
    [
      ['404', { emptyStatus: 404 }],
      ['204', { emptyStatus: 204 }],
      ['no-body', { emptyBody: true }],
    ] as const
  ).flatMap(([name, empty]) => [
    kind(`nothing-${name}-from-the-start`, breaks('oneCurrentList'), `Every answer is ${name}.`, {
      ...empty,
      hides: () => true,
    }),
    kind(`nothing-${name}-after-a-night`, breaks('oneCurrentList'), `From a night on every answer is ${name}.`, {
      ...empty,
      hides: (_, { nights }) => nights > 0,
    }),
    kind(`nothing-${name}-after-a-deploy`, breaks('oneCurrentList'), `A deploy leaves ${name} to everything.`, {
      ...empty,
      hides: (_, { deployed }) => deployed,
    }),
  ]),
];

/** Up to one application in thirty cannot be served. */
function poisonous(draws: Draws, failure: '500' | 'broken'): Pick<Traits, 'poison'> {
  const share = 1 / draws.logInt(30, 600);
  return { poison: ({ hash }) => (hash < share ? failure : null) };
}

const inTime: readonly Kind[] = [
  kind('late-commits', keepsAll, 'Many ids are reserved first and committed during the sweep.', (draws) => ({
    world: {
      drafts: 0.25,
      eventEveryMs: draws.logInt(300, 10_000),
      mix: { arrival: 0.2, late: 0.7, deletion: 0.1, change: 0, return: 0 },
    },
  })),
  kind('drafts-old-dates', keepsAll, 'Drafts are committed late, under their old ids and old dates.', (draws) => ({
    world: { drafts: 0.2, lateDates: 'old', eventEveryMs: draws.logInt(500, 10_000) },
    order: 'date-descending',
  })),
  kind('drafts-new-dates', keepsAll, 'Drafts are committed late, under their old ids, with new dates.', (draws) => ({
    world: { drafts: 0.2, lateDates: 'new', eventEveryMs: draws.logInt(500, 10_000) },
    order: 'date',
  })),
  kind('ids-reused', keepsAll, 'Arrivals take the ids of deleted rows.', (draws) => ({
    world: {
      reusesIds: true,
      eventEveryMs: draws.logInt(300, 10_000),
      mix: { arrival: 0.5, late: 0, deletion: 0.5, change: 0, return: 0 },
    },
  })),
  kind('imports-old-dates', keepsAll, 'Bulk imports bring new ids with old dates.', {
    world: { dates: 'imports' },
    order: 'date',
  }),
  kind('dates-shuffled', keepsAll, 'Dates tell nothing of ids.', {
    world: { dates: 'shuffled' },
    order: 'date',
  }),
  kind('dates-reversed', keepsAll, 'The lowest ids have the newest dates.', {
    world: { dates: 'reversed' },
    order: 'date',
  }),
  kind('dates-missing', keepsAll, 'A fifth of the rows has no readable date, and no date filter shows them.', {
    world: { dates: 'missing' },
  }),
  kind('dates-missing-match', keepsAll, 'A fifth of the rows has no readable date, and each date filter shows them.', {
    world: { dates: 'missing' },
    undatedMatches: true,
    order: 'date-descending',
  }),
  kind('churn', keepsAll, 'Something happens several times a second.', (draws) => ({
    world: { drafts: 0.15, eventEveryMs: draws.logInt(150, 600) },
  })),
  kind('churn-descending', keepsAll, 'Something happens several times a second, the newest ids first.', (draws) => ({
    world: { drafts: 0.15, eventEveryMs: draws.logInt(150, 600) },
    order: 'id-descending',
  })),
  kind('deletions', keepsAll, 'Most of what happens is deletion.', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(200, 4000),
      mix: { arrival: 0.15, late: 0.05, deletion: 0.8, change: 0, return: 0 },
    },
  })),
  kind('deleted-return', keepsAll, 'Deleted rows come back under their ids and dates.', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(200, 4000),
      mix: { arrival: 0.1, late: 0.1, deletion: 0.4, change: 0, return: 0.4 },
    },
  })),
  kind('sparse-ids-descending', keepsAll, 'Ids leave gaps of up to a million, the newest first.', {
    world: { ids: 'sparse' },
    order: 'id-descending',
  }),
  kind('ids-above-double', keepsAll, 'Ids lie above 2^53, and each is compared exactly.', {
    world: { ids: 'above-double' },
  }),
  kind('ids-above-32-bit', keepsAll, 'Ids cross 2^31, and each is compared exactly.', {
    world: { ids: 'above-32-bit' },
  }),
  kind(
    'ids-unreadable',
    keepsAll,
    'One in twenty has an id that cannot be read.',
    unreadableIds((id) => (id * 2_654_435_761n) % 1_000_003n < 50_000n),
  ),
  kind('ids-unreadable-runs', keepsAll, 'Whole runs of neighbours have ids that cannot be read.', {
    ...unreadableIds((id) => (id / 1_000n) % 3n === 0n),
    order: 'hash',
  }),
];

/** Rows whose id on the wire is not a number. They take places in a page, and no question can show their id. */
function unreadableIds(isOne: (id: bigint) => boolean): Traits {
  return {
    shows: (row) => (isOne(row.id) ? { ...row, unreadable: true } : row),
    couldShow: ({ id }) => !isOne(id),
  };
}

const inStaleness: readonly Kind[] = [
  kind('replica-lags', breaks('oneCurrentList'), 'All answers are some seconds to minutes old.', (draws) => {
    const lagMs = draws.logInt(3000, 300_000);
    return { world: { eventEveryMs: 1500 }, viewAt: ({ atMs }) => atMs - lagMs };
  }),
  kind('replica-sticks', breaks('oneCurrentList'), 'All answers come from a copy that is never renewed.', {
    viewAt: () => beginning,
  }),
  kindByChance(
    'replica-round-robin',
    breaks('oneCurrentList'),
    'A fresh copy and one that is never renewed alternate.',
    {
      viewAt: ({ atMs, before }) => (before % 2 === 0 ? atMs : beginning),
    },
  ),
  kindByChance(
    'replica-by-chance',
    breaks('oneCurrentList'),
    'Three answers in ten come from a copy that is minutes old.',
    (draws) => {
      const lagMs = draws.logInt(5000, 300_000);
      return {
        world: { eventEveryMs: 1500 },
        viewAt: ({ atMs, draws: own }) => (own.chance(0.3) ? atMs - lagMs : atMs),
      };
    },
  ),
  kind('replica-for-two-filters', breaks('oneCurrentList'), 'Two id filters are answered from a stuck copy.', {
    viewAt: ({ atMs, idFilters }) => (idFilters === 2 ? beginning : atMs),
  }),
  kind(
    'replica-for-dates',
    breaks('oneCurrentList'),
    'Date filters are answered from an index that is never renewed.',
    {
      viewAt: ({ atMs, hasDates }) => (hasDates ? beginning : atMs),
    },
  ),
  kind('replica-sticks-mid-sweep', breaks('oneCurrentList'), 'A deploy during the sweep brings an old copy back.', {
    viewAt: ({ atMs, deployed }) => (deployed ? beginning : atMs),
  }),
  ...[true, false].flatMap((tellsAge) =>
    (
      [
        ['minute', minuteMs],
        ['day', daySeconds * 1000],
      ] as const
    ).map(([name, forMs]) =>
      kind(
        `cache-${name}${tellsAge ? '-with-age' : ''}`,
        breaks('oneCurrentList'),
        `Equal questions get one answer for a ${name}, ${tellsAge ? 'with' : 'without'} an Age header.`,
        { world: { eventEveryMs: 1500 }, cache: { key: urlOf, forMs, tellsAge, current: false } },
      ),
    ),
  ),
  kind('cache-two-filters', breaks('oneCurrentList'), 'Only questions with two id filters are answered from a cache.', {
    world: { eventEveryMs: 1500 },
    cache: {
      key: (ask) => (ask.idFilters === 2 ? urlOf(ask) : null),
      forMs: 600_000,
      tellsAge: false,
      current: false,
    },
  }),
  kind('cache-unfiltered', breaks('oneCurrentList'), 'Only the question without any filter is answered from a cache.', {
    world: { eventEveryMs: 1500 },
    cache: {
      key: (ask) => (ask.idFilters === 0 && !ask.hasDates ? 'all' : null),
      forMs: 600_000,
      tellsAge: false,
      current: false,
    },
  }),
  kind('cache-by-lower-bound', breaks('oneCurrentList'), 'The cache knows questions by their lower bound alone.', {
    cache: { key: ({ request }) => String(request.afterId), forMs: minuteMs, tellsAge: false, current: false },
  }),
  kind('cache-always-current', keepsAll, 'A cache with an Age header is emptied whenever the list changes.', {
    nightFactors: [1],
    cache: { key: urlOf, forMs: daySeconds * 1000, tellsAge: true, current: true },
  }),
  kind('fresh-rows-hidden', breaks('oneCurrentList'), 'Rows show only when they are ten seconds old.', {
    world: { eventEveryMs: 1500 },
    hides: (row, { atMs }) => row.spans.some((span) => span.from > atMs - 10_000),
  }),
];

const inHiding: readonly Kind[] = [
  kindByChance('false-empties', breaks('oneCurrentList'), 'Two answers in a hundred are empty by chance.', {
    trims: (rows, { draws }) => (draws.chance(0.02) ? [] : rows),
  }),
  kindByChance(
    'false-empties-two-filters',
    breaks('oneCurrentList'),
    'Some questions with two id filters are empty by chance.',
    {
      trims: (rows, { draws, idFilters }) => (idFilters === 2 && draws.chance(0.04) ? [] : rows),
    },
  ),
  kindByChance(
    'false-empties-204',
    breaks('oneCurrentList'),
    'Some answers are 204 by chance, as all empty answers are.',
    {
      emptyStatus: 204,
      trims: (rows, { draws }) => (draws.chance(0.03) ? [] : rows),
    },
  ),
  kindByChance('shard-missing', breaks('oneCurrentList'), 'One of four shards is missing in one answer of twenty.', {
    hides: (row, { before }) => isUnlucky(before) && Math.floor(row.hash * 4) === before % 4,
  }),
  kind('shard-missing-two-filters', breaks('oneCurrentList'), 'One of four shards is missing for two id filters.', {
    hides: (row, { idFilters }) => idFilters === 2 && row.hash < 0.25,
  }),
  kind('shard-missing-wide', breaks('oneCurrentList'), 'Questions without a lower bound miss one shard.', {
    hides: (row, { request }) => request.afterId === null && row.hash < 0.1,
  }),
  kind('shard-missing-mid-sweep', breaks('oneCurrentList'), 'A shard falls out during the sweep and stays away.', {
    hides: (row, { deployed }) => deployed && row.hash < 0.2,
  }),
  kind('hidden-from-narrow', breaks('oneCurrentList'), 'Some rows show in no question with two id filters.', {
    order: 'id-descending',
    hides: (row, { idFilters }) => idFilters === 2 && row.score < 4,
  }),
  kind('hidden-from-dated', breaks('oneCurrentList'), 'Some rows show only when no date filter is sent.', {
    hides: (row, { hasDates }) => hasDates && row.score < 10,
  }),
  kind('hidden-job', breaks('oneCurrentList'), 'Rows of closed jobs show only when a date filter is sent.', {
    hides: (row, { hasDates }) => !hasDates && row.job < 2,
  }),
  kind('default-window', breaks('oneCurrentList'), 'Only the last 90 days show unless a date filter is sent.', {
    hides: (row, { hasDates, now }) => !hasDates && (row.submittedAt ?? now) < now - 90 * daySeconds,
  }),
  kind(
    'default-window-without-lower-bound',
    breaks('oneCurrentList'),
    'Only 30 days show when no lower bound is sent.',
    {
      order: 'id-descending',
      hides: (row, { request, now }) =>
        request.afterId === null && request.afterDate === null && (row.submittedAt ?? now) < now - 30 * daySeconds,
    },
  ),
  kind('default-window-for-ids', breaks('oneCurrentList'), 'Only 90 days show when an id filter is sent.', {
    hides: (row, { idFilters, now }) => idFilters > 0 && (row.submittedAt ?? now) < now - 90 * daySeconds,
  }),
  kind('proxy-drops-last', breaks('oneCurrentList'), 'A proxy drops the last rows of each answer.', (draws) => {
    const dropped = draws.int(1, 3);
    return { trims: (rows) => rows.slice(0, Math.max(0, rows.length - dropped)) };
  }),
  kind('proxy-drops-last-of-large', breaks('oneCurrentList'), 'A proxy drops the last two rows of large answers.', {
    world: { sizes: 'heavy' },
    order: 'date-descending',
    trims: (rows, { pageBytes }) =>
      rows.reduce((sum, row) => sum + row.bytes, 0) > pageBytes / 3
        ? rows.slice(0, Math.max(0, rows.length - 2))
        : rows,
  }),
  kindByChance(
    'proxy-drops-some',
    breaks('oneCurrentList'),
    'One row in two hundred falls out of an answer by chance.',
    {
      trims: (rows, { draws }) => rows.filter(() => !draws.chance(0.005)),
    },
  ),
  kind(
    'ids-shown-as-double',
    breaks('oneCurrentList'),
    'Ids above 2^53 are shown rounded, so one stands for another.',
    {
      world: { ids: 'above-double' },
      shows: (row) => ({ ...row, id: BigInt(Number(row.id)) }),
      couldShow: (row) => BigInt(Number(row.id)) === row.id,
    },
  ),
];

/** True for one question in twenty. */
function isUnlucky(before: number): boolean {
  return (before * 7919) % 20 === 3;
}

const clampTo = (request: ListRequest, most: bigint): ListRequest => ({
  ...request,
  afterId: request.afterId !== null && request.afterId > most ? most : request.afterId,
  beforeId: request.beforeId !== null && request.beforeId > most ? most : request.beforeId,
});

const inFilters: readonly Kind[] = [
  kind('ids-compared-as-text', breaks('filtersBeforeCap'), "Ids are compared as text: '996' comes after '1042'.", {
    world: { ids: 'digits' },
    compareIds: compareText,
    order: 'id-text',
  }),
  kind(
    'ids-compared-as-text-by-number',
    breaks('filtersBeforeCap'),
    'Bounds compare text, and the order is by number.',
    {
      world: { ids: 'digits' },
      compareIds: compareText,
    },
  ),
  kind('ids-compared-as-double', breaks('filtersBeforeCap'), 'Ids above 2^53 are rounded before they are compared.', {
    world: { ids: 'above-double' },
    compareIds: (id, bound) => Number(id) - Number(bound),
  }),
  kind('bounds-overflow-32-bit', breaks('filtersBeforeCap'), 'Bounds above 2^31 turn negative.', {
    world: { ids: 'above-32-bit' },
    rewrite: (request) => ({
      ...request,
      afterId: request.afterId === null ? null : BigInt.asIntN(32, request.afterId),
      beforeId: request.beforeId === null ? null : BigInt.asIntN(32, request.beforeId),
    }),
  }),
  kind('bounds-clamped', breaks('filtersBeforeCap'), 'Bounds above 2^31 are lowered to it silently.', {
    world: { ids: 'above-32-bit' },
    rewrite: (request) => clampTo(request, 2_147_483_647n),
  }),
  kind('bounds-clamped-told', breaks('filtersBeforeCap'), 'Bounds above 2^31 are lowered to it, and the echo tells.', {
    world: { ids: 'above-32-bit' },
    rewrite: (request) => clampTo(request, 2_147_483_647n),
    echo: ({ request: { afterId, beforeId } }) =>
      (afterId ?? 0n) > 2_147_483_647n || (beforeId ?? 0n) > 2_147_483_647n ? 'differs' : 'matches',
  }),
  kind(
    'range-clamped',
    breaks('filtersBeforeCap'),
    'A range wider than 20 to 1000 ids, by seed, is narrowed from above.',
    (draws) => {
      const widest = BigInt(draws.logInt(20, 1000));
      return {
        rewrite: (request) => {
          const { afterId, beforeId } = request;
          const isWide = afterId !== null && beforeId !== null && beforeId - afterId > widest;
          return isWide ? { ...request, beforeId: afterId + widest } : request;
        },
      };
    },
  ),
  kind('after-id-after-cap', breaks('filtersBeforeCap'), 'The lower bound is applied to the page that was cut off.', {
    stage: (filter) => (filter === 'afterId' ? 'after-cap' : 'before-cap'),
  }),
  kind(
    'after-id-after-cap-by-score',
    breaks('filtersBeforeCap'),
    'The lower bound comes late, the best scores first.',
    {
      order: 'score',
      stage: (filter) => (filter === 'afterId' ? 'after-cap' : 'before-cap'),
    },
  ),
  kind(
    'before-id-after-cap-by-hash',
    breaks('filtersBeforeCap'),
    'The upper bound comes late, in the order of hashes.',
    {
      order: 'hash',
      stage: (filter) => (filter === 'beforeId' ? 'after-cap' : 'before-cap'),
    },
  ),
  kind('before-id-after-cap-descending', breaks('filtersBeforeCap'), 'The upper bound comes late, the newest first.', {
    order: 'id-descending',
    stage: (filter) => (filter === 'beforeId' ? 'after-cap' : 'before-cap'),
  }),
  kind('before-id-after-cap-by-date', breaks('filtersBeforeCap'), 'The upper bound comes late, chosen by date.', {
    world: { dates: 'shuffled' },
    order: 'date',
    shown: 'id',
    stage: (filter) => (filter === 'beforeId' ? 'after-cap' : 'before-cap'),
  }),
  kind('both-ids-after-cap', breaks('filtersBeforeCap'), 'Both id filters are applied to the page that was cut off.', {
    stage: (filter) => (filter === 'afterId' || filter === 'beforeId' ? 'after-cap' : 'before-cap'),
  }),
  kind('both-ids-after-cap-if-two', breaks('filtersBeforeCap'), 'Id filters come late only when both are sent.', {
    order: 'id-descending',
    stage: (filter, { idFilters }) =>
      idFilters === 2 && (filter === 'afterId' || filter === 'beforeId') ? 'after-cap' : 'before-cap',
  }),
  kind(
    'second-id-after-cap-if-two',
    breaks('filtersBeforeCap'),
    'With two id filters the upper one comes late, hashed.',
    {
      order: 'hash',
      stage: (filter, { idFilters }) => (idFilters === 2 && filter === 'beforeId' ? 'after-cap' : 'before-cap'),
    },
  ),
  kind('filters-after-cap-mid-sweep', breaks('filtersBeforeCap'), 'A deploy moves the upper bound behind the cap.', {
    world: { dates: 'shuffled' },
    order: 'date',
    stage: (filter, { deployed }) => (deployed && filter === 'beforeId' ? 'after-cap' : 'before-cap'),
  }),
  kind('dates-after-cap', keepsAll, 'Date filters are applied to the page that the id filters and the cap left.', {
    stage: (filter) => (filter === 'afterDate' || filter === 'beforeDate' ? 'after-cap' : 'before-cap'),
  }),
  kind('dates-after-cap-descending', keepsAll, 'Date filters come after the cap, the newest ids first.', {
    order: 'id-descending',
    stage: (filter) => (filter === 'afterDate' || filter === 'beforeDate' ? 'after-cap' : 'before-cap'),
  }),
  kind('dates-before-ids-after-cap', breaks('filtersBeforeCap'), 'Dates are applied before the cap, ids after it.', {
    order: 'date-descending',
    stage: (filter) => (filter === 'afterDate' || filter === 'beforeDate' ? 'before-cap' : 'after-cap'),
  }),
  kind('dates-ignored', keepsAll, 'Date filters change nothing.', {
    stage: (filter) => (filter === 'afterDate' || filter === 'beforeDate' ? 'never' : 'before-cap'),
  }),
  kind('dates-ignored-with-ids', keepsAll, 'Date filters change nothing as soon as an id filter is sent.', {
    stage: (filter, { idFilters }) =>
      idFilters > 0 && (filter === 'afterDate' || filter === 'beforeDate') ? 'never' : 'before-cap',
  }),
  kind('prefetch-limited', breaks('filtersBeforeCap'), 'Filters see only the newest rows of a fixed number.', {
    order: 'id-descending',
    prefetch: ({ page }) => page * 3,
  }),
  kind('combine-or', breaks('filtersBeforeCap'), 'A row that passes one of the filters is shown.', { combine: 'or' }),
  kind('combine-or-descending', breaks('filtersBeforeCap'), 'Filters are combined by OR, the newest first.', {
    combine: 'or',
    order: 'id-descending',
  }),
  kindByChance('combine-or-volatile', breaks('filtersBeforeCap'), 'OR, and rows that differ in every answer.', {
    combine: 'or',
    order: 'hash',
    trims: (rows, { draws }) => rows.map((row) => ({ ...row, bytes: row.bytes + draws.int(0, 40) })),
  }),
  kind('combine-after-wins', breaks('filtersBeforeCap'), 'With two id filters only the lower one counts.', {
    combine: 'after-wins',
  }),
  kind('combine-before-wins', breaks('filtersBeforeCap'), 'With two id filters only the upper one counts.', {
    combine: 'before-wins',
  }),
  kind('combine-refused', keepsAll, 'Two id filters are refused with 400.', {
    refuses: ({ idFilters }) => (idFilters === 2 ? 400 : null),
  }),
  kind('combine-refused-descending', keepsAll, 'Two id filters are refused with 400, the newest ids first.', {
    order: 'id-descending',
    refuses: ({ idFilters }) => (idFilters === 2 ? 400 : null),
  }),
  kind('dates-refused', keepsAll, 'Date filters are refused with 400.', {
    refuses: ({ hasDates }) => (hasDates ? 400 : null),
  }),
  kind('after-id-ignored', breaks('filtersBeforeCap'), 'The lower bound changes nothing.', {
    stage: (filter) => (filter === 'afterId' ? 'never' : 'before-cap'),
  }),
  kind('before-id-ignored', breaks('filtersBeforeCap'), 'The upper bound changes nothing.', {
    stage: (filter) => (filter === 'beforeId' ? 'never' : 'before-cap'),
  }),
  kind('all-filters-ignored', breaks('filtersBeforeCap'), 'No filter changes anything.', { stage: () => 'never' }),
];

const inDialects: readonly Kind[] = [
  kind('inclusive-after', keepsAll, 'The lower bound is included.', {
    inclusive: (filter) => filter === 'afterId' || filter === 'afterDate',
  }),
  kind('inclusive-before', keepsAll, 'The upper bound is included.', {
    inclusive: (filter) => filter === 'beforeId' || filter === 'beforeDate',
  }),
  kind('inclusive-both', keepsAll, 'Both bounds are included.', { inclusive: () => true }),
  kind('inclusive-both-cap-one', keepsAll, 'Both bounds are included, and a page holds one row.', {
    page: 1,
    nightFactors: [1],
    inclusive: () => true,
  }),
  kind('inclusive-per-shape', keepsAll, 'Which bounds are included depends on how many filters are sent.', (draws) => {
    const table = Array.from({ length: 12 }, () => draws.chance(0.5));
    return { inclusive: (filter, { idFilters }) => table[idFilters * 4 + columns[filter]] ?? false };
  }),
  kind(
    'inclusive-per-shape-cap-per-shape',
    keepsAll,
    'Bounds and cap both depend on how many filters are sent.',
    (draws) => {
      const table = Array.from({ length: 12 }, () => draws.chance(0.5));
      const parts = draws.shuffle([1, 0.5, draws.between(0.5, 1)]);
      const order = draws.pick(['id', 'id-descending'] as const);
      return {
        inclusive: (filter, { idFilters }) => table[idFilters * 4 + columns[filter]] ?? false,
        cap: ({ page, idFilters }) => byCount(Math.ceil(page * (parts[idFilters] ?? 1))),
        order: order,
      };
    },
  ),
  kind('inclusive-mid-sweep', keepsAll, 'A deploy during the sweep changes which bounds are included.', (draws) => {
    const first = draws.chance(0.5);
    // When the bound alone fills a page, a poll cannot detect that the next id was left out (see docs/coverage.md).
    return { leastPage: 3, inclusive: (_, { deployed }) => deployed === first };
  }),
  kindByChance('inclusive-by-chance', keepsAll, 'Servers behind one name differ in which bounds they include.', {
    // When the bound alone fills a page, a poll cannot detect that the next id was left out (see docs/coverage.md).
    leastPage: 3,
    inclusive: (_, { draws }) => draws.chance(0.5),
  }),
  kind('empty-204', keepsAll, 'An empty answer is 204 without a body.', { emptyStatus: 204 }),
  kind('empty-404', keepsAll, 'An empty answer is 404.', { emptyStatus: 404 }),
  kind('echo-absent', keepsAll, 'No filter is echoed.', { echo: () => 'absent' }),
  kind('echo-differs', keepsAll, 'The echo is wrong, the filters are applied.', { echo: () => 'differs' }),
  kind('echo-differs-for-two', keepsAll, 'The echo is wrong when two id filters are sent.', {
    echo: ({ idFilters }) => (idFilters === 2 ? 'differs' : 'matches'),
  }),
  kind('zone-utc', keepsAll, 'Date filters are read as UTC.', { dateShift: () => 36_000 }),
  kind('zone-plus-eleven', keepsAll, 'Date filters are read as UTC+11.', { dateShift: () => -3600 }),
  kind('zone-melbourne', keepsAll, 'Date filters are read as UTC+10, or UTC+11 in summer.', {
    dateShift: (seconds) => (isSummer(seconds) ? -3600 : 0),
  }),
  kind('zone-melbourne-by-date', keepsAll, 'Chosen by date, with date filters read in summer time.', {
    order: 'date',
    dateShift: (seconds) => (isSummer(seconds) ? -3600 : 0),
    inclusive: () => true,
  }),
  kind('dates-cut-to-the-day', keepsAll, 'Date filters lose their time of day.', {
    dateShift: (seconds) => -(seconds % daySeconds),
  }),
  kind('clock-skewed', keepsAll, 'Rows show dates some minutes or hours off those that filters compare.', (draws) => {
    const skew = draws.logInt(30, 7200) * (draws.chance(0.5) ? 1 : -1);
    return {
      shows: (row) => ({ ...row, submittedAt: row.submittedAt === null ? null : row.submittedAt + skew }),
    };
  }),
  kindByChance(
    'forbidden-when-fast',
    keepsAll,
    'A question that comes soon after another is refused with 403.',
    (draws) => {
      const fastMs = draws.logInt(20, 500);
      return { refuses: ({ gapMs, draws: own }) => (gapMs < fastMs && own.chance(0.3) ? 403 : null) };
    },
  ),
];

const columns = { afterId: 0, beforeId: 1, afterDate: 2, beforeDate: 3 } as const;

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

const inCombinations: readonly Kind[] = [
  kind('mix-tombstones-refilled-halved', breaks('capAboveHalf'), 'Deleted rows, refilled to half of a halved cap.', {
    leastPage: 4,
    world: { tombstones: 'scattered' },
    refills: true,
    cap: ({ page, deployed }) => byCount(deployed ? half(page) : page),
  }),
  kind('mix-join-two-by-shape', breaks('capAboveHalf'), 'Copies take places, and two id filters get half a page.', {
    leastPage: 4,
    world: { copiesUpTo: 2 },
    cap: ({ page, idFilters }) => byCount(idFilters === 2 ? half(page) : page),
  }),
  kindByChance(
    'mix-random-churn-inclusive',
    keepsAll,
    'Random order, random cap, bounds included, and much happens.',
    (draws) => ({
      world: { drafts: 0.15, eventEveryMs: draws.logInt(150, 2000) },
      order: 'random',
      inclusive: () => true,
      cap: ({ page, draws: own }) => byCount(own.int(Math.floor(page / 2) + 1, page)),
    }),
  ),
  kindByChance(
    'mix-date-shown-id-random-cap-churn',
    keepsAll,
    'By date, shown by id, random cap, and much happens.',
    (draws) => ({
      world: { drafts: 0.2, dates: 'drafts-late', eventEveryMs: draws.logInt(150, 2000) },
      order: 'date-descending',
      shown: 'id',
      cap: ({ page, draws: own }) => byCount(own.int(Math.floor(page / 2) + 1, page)),
    }),
  ),
  kind(
    'mix-bytes-heavy-churn-by-date',
    breaks('capAboveHalf'),
    'Heavy tails by date, shown by id, cut by bytes, and much happens.',
    (draws) => ({
      world: { drafts: 0.2, dates: 'shuffled', sizes: 'heavy', eventEveryMs: draws.logInt(150, 2000) },
      order: 'date',
      shown: 'id',
      cap: ({ pageBytes }) => byBytes(pageBytes),
    }),
  ),
  kind('mix-halved-flipped-mid-sweep', keepsAll, 'One deploy halves the cap, reverses the order and the bounds.', {
    order: ({ deployed }) => (deployed ? 'id' : 'id-descending'),
    inclusive: (_, { deployed }) => deployed,
    cap: ({ page, deployed }) => byCount(deployed ? half(page) : page),
  }),
  kind('mix-order-modified-returns', keepsAll, 'By last change, with rows that change, go and come back.', (draws) => ({
    world: {
      eventEveryMs: draws.logInt(150, 2000),
      mix: { arrival: 0.1, late: 0.1, deletion: 0.2, change: 0.4, return: 0.2 },
    },
    order: 'modified',
  })),
  kind('mix-refused-by-date', keepsAll, 'Two id filters are refused, and rows are chosen by date.', {
    world: { dates: 'drafts-late' },
    order: 'date-descending',
    shown: 'id',
    refuses: ({ idFilters }) => (idFilters === 2 ? 400 : null),
  }),
  kind('mix-404-inclusive-descending', keepsAll, 'Empty is 404, bounds are included, the newest first, no echo.', {
    emptyStatus: 404,
    inclusive: () => true,
    order: 'id-descending',
    echo: () => 'absent',
  }),
  kindByChance(
    'mix-stale-capped',
    breaks('oneCurrentList', 'capAboveHalf'),
    'A stuck copy with a third of the cap alternates with a fresh one.',
    {
      leastPage: 3,
      viewAt: ({ atMs, before }) => (before % 2 === 0 ? atMs : beginning),
      cap: ({ page, before }) => byCount(before % 2 === 0 ? page : third(page)),
    },
  ),
  kind(
    'mix-all-broken',
    breaks('filtersBeforeCap', 'capAboveHalf', 'oneCurrentList'),
    'Everything that can be wrong is.',
    {
      leastPage: 3,
      groups: 'after-filters',
      order: 'date',
      stage: (filter) => (filter === 'beforeId' ? 'after-cap' : 'before-cap'),
      cap: ({ page, deployed }) => byCount(deployed ? third(page) : page),
      cache: { key: urlOf, forMs: minuteMs, tellsAge: false, current: false },
    },
  ),
  kind(
    'mix-cap-by-shape-inclusive-deleted',
    keepsAll,
    'Order and bounds by shape, and spaced deleted rows take places.',
    (draws) => {
      const table = Array.from({ length: 12 }, () => draws.chance(0.5));
      return {
        leastPage: 2,
        world: { tombstones: 'spaced', dates: 'monotone' },
        order: ({ idFilters }) => (idFilters === 1 ? 'id-descending' : 'id'),
        inclusive: (filter, { idFilters }) => table[idFilters * 4 + columns[filter]] ?? false,
      };
    },
  ),
];

export const kinds: readonly Kind[] = [
  ...inOrders,
  ...inCaps,
  ...inSizes,
  ...inPlaces,
  ...inThinning,
  ...inFailures,
  ...inTime,
  ...inStaleness,
  ...inHiding,
  ...inFilters,
  ...inDialects,
  ...inCombinations,
];

export function kindNamed(name: string): Kind {
  const found = kinds.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no kind ${name}.`);
  return found;
}
