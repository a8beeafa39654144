// Prints the requests and the certificates of sweeps, per kind of server, as markdown: npm run coverage:costs -- [seeds per kind] [kind].
// The counts are exact: the servers are simulated (test/simulation), and the sweeps run the product's own code.
import type { Done } from '../src/domain/coverage/certificate.ts';
import type { Kind } from '../test/simulation/hidden-server.ts';
import { isCrowded, planPoll, startMs } from '../test/simulation/judge.ts';
import { kindNamed, kinds } from '../test/simulation/kinds.ts';
import { createMemory, runSweep } from '../test/simulation/simulated-reader.ts';

const seeds = Number(process.argv[2] ?? 20);
const only = process.argv[3];
const hourMs = 3_600_000;
const page = 100;
const nights = 7;

const line = (cells: readonly (string | number)[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
const head = (cells: readonly string[]) => {
  line(cells);
  line(cells.map(() => '---'));
};

/** The kinds of server in the cost tables, and what is special about each. */
const costs: readonly (readonly [name: string, about: string])[] = [
  ['friendly', 'ascending by id'],
  ['order-id-descending', 'descending by id'],
  ['order-date', 'by date'],
  ['order-date-descending', 'by date, newest first'],
  ['chosen-date-shown-id', 'chosen by date, shown by id'],
  ['order-hash', 'by a hash'],
  ['order-random', 'another order on every request'],
  ['bytes-lognormal', 'pages by bytes'],
  ['cap-bytes-stops-after', 'pages by bytes, heavy-tailed sizes'],
  ['bytes-heavy-random', 'pages by bytes, heavy-tailed sizes, no order'],
  ['bytes-heavy-by-size', 'pages by bytes, heavy-tailed sizes, smallest first'],
  ['inclusive-both', 'bounds included'],
  ['cap-halved-mid-sweep', 'pages halved during the sweep'],
];

function printCosts(pages: number): void {
  process.stdout.write(`\n${pages} pages of ${page}:\n\n`);
  head(['server', 'rows a page', 'first sweep', 'per page', 'recheck', 'per page', 'quiet poll', 'worth']);
  for (const [name, about] of costs) {
    const server = kindNamed(name).create(7, { startMs, still: true, rows: pages * page, page });
    const memory = createMemory(startMs);
    let [cut, shown] = [0, 0];
    const first = runSweep(server, memory, {
      seed: 7,
      onStep: ({ question, answer }) => {
        if (answer.kind !== 'page' || question.purpose !== 'range' || question.beforeId !== null) return;
        cut++;
        shown += answer.rows.length;
      },
    });
    // If bytes limit the pages, the average length of pages without an upper bound counts as the page size.
    const perPage = name.includes('bytes-') ? Math.min(page, shown / Math.max(1, cut)) : page;
    const per = (requests: number) => ((requests * perPage) / (pages * page)).toFixed(2);
    memory.now += 20 * hourMs;
    const again = runSweep(server, memory, { seed: 8, known: true });
    memory.now += hourMs;
    const plan = { ...planPoll(memory), rigor: 'poll' } as const;
    const poll = runSweep(server, memory, { plan, pages: again.done.pages });
    line([
      about,
      perPage.toFixed(0),
      first.requests,
      per(first.requests),
      again.requests,
      per(again.requests),
      poll.requests,
      `${worthOf(first.done)}, ${worthOf(again.done)}`,
    ]);
  }
}

type Worth = 'proven' | 'harmless' | 'doubt' | 'unproven';

function worthOf({ certificate, risk }: Pick<Done, 'certificate' | 'risk'>): Worth {
  if (certificate !== 'assumed') return certificate;
  return risk === 'doubt' ? 'doubt' : 'harmless';
}

/**
 * nobody: the first sweep loses no application. first: it loses one and reports doubt or unproven. week: it reports neither, but a recheck
 * in the following week finds every lost application or reports a problem. never: none of these.
 */
type Found = 'nobody' | 'first' | 'week' | 'never';

interface Judged {
  readonly worth: Worth;
  readonly found: Found;
}

/**
 * Runs a first sweep and, if it loses an application silently, a week of nightly rechecks. A server that gets more applications
 * than a sweep can follow is drawn again; after 20 draws its list stands still.
 */
function judge(kind: Kind, seed: number): Judged {
  let draw = seed;
  while (draw < 20 * seeds && isCrowded(kind.create(draw, { startMs }))) draw += seeds;
  const server = kind.create(draw, { startMs, still: draw >= 20 * seeds });
  const memory = createMemory(startMs);
  const first = runSweep(server, memory, { seed });
  const worth = worthOf(first.done);
  if (first.lost.length === 0) return { worth, found: 'nobody' };
  if (isTold(worth)) return { worth, found: 'first' };
  // An application that the source has deleted meanwhile can no longer be found.
  const isLeft = () => {
    const present = new Set(server.presentAt(memory.now));
    return first.lost.some((id) => present.has(id) && !memory.held.has(id));
  };
  for (let night = 1; night <= nights; night++) {
    memory.now += 24 * hourMs;
    server.passNight(memory.now);
    const { done } = runSweep(server, memory, { seed: seed + night, known: true });
    if (isTold(worthOf(done)) || !isLeft()) return { worth, found: 'week' };
  }
  return { worth, found: 'never' };
}

function isTold(worth: Worth): boolean {
  return worth === 'doubt' || worth === 'unproven';
}

function printKinds(): void {
  process.stdout.write(`\n${seeds} servers of each kind, of 0 to 600 applications:\n\n`);
  head([
    'kind',
    'keeps',
    'proven',
    'harmless',
    'doubt',
    'unproven',
    'lost nobody',
    'told at once',
    'within a week',
    'never',
  ]);
  for (const kind of kinds.filter(({ name }) => only === undefined || name === only)) {
    const judged = Array.from({ length: seeds }, (_, seed) => judge(kind, seed));
    const share = (is: (one: Judged) => boolean) => `${Math.round((100 * judged.filter(is).length) / seeds)} %`;
    const { filtersBeforeCap, capAboveHalf, oneCurrentList } = kind.keeps;
    line([
      kind.name,
      [filtersBeforeCap, capAboveHalf, oneCurrentList].map((is) => (is ? 'yes' : 'no')).join(' '),
      ...(['proven', 'harmless', 'doubt', 'unproven'] as const).map((worth) => share((one) => one.worth === worth)),
      ...(['nobody', 'first', 'week', 'never'] as const).map((found) => share((one) => one.found === found)),
    ]);
  }
}

if (only === undefined) for (const pages of [20, 200]) printCosts(pages);
printKinds();
