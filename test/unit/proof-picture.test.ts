// The picture of a proof: every part of the axis has a column, and a column says what its records say. And the page around it.
import { describe, expect, test } from 'vitest';
import type { ExportedCertificate } from '../../src/domain/evidence/export.ts';
import { findClosed, findQuestionsAbout, type ShownRecord, toColumns } from '../../src/domain/evidence/picture.ts';
import type { AnswerRecord, Bounds } from '../../src/domain/evidence/record.ts';
import { renderProofPage } from '../../src/web/admin/proof-page.ts';

const to = (low: bigint, high: bigint | null): Bounds => ({ from: low, to: high });

function answer(
  n: number,
  given: {
    purpose?: AnswerRecord['question']['purpose'];
    from: bigint;
    to: bigint | null;
    rows: number;
    closed?: Bounds[];
    opened?: Bounds[];
  },
): ShownRecord {
  const { purpose = 'range', rows, closed = [], opened = [] } = given;
  return {
    n,
    added: 0,
    record: {
      type: 'answer',
      ...{ part: 1, knew: n - 1, seq: BigInt(n), sentAt: 1_000 * n, tookMs: 5 },
      question: {
        purpose,
        axis: 'id',
        after: given.from - 1n,
        before: null,
        since: null,
        from: given.from,
        to: given.to,
      },
      answer: {
        ...{ kind: 'page', rows, lacks: 0, unreadable: 0, bytes: 10, largest: 5, sizes: [0, 0] },
        ...{ echo: 'matches', weakEmpty: false, cached: false, body: null },
      },
      ...{ closed, opened, limit: [0, 0], uneven: false, sorted: null, planned: null },
    },
  };
}

function certificate(low: bigint, high: bigint | null, given: Partial<ExportedCertificate> = {}): ExportedCertificate {
  return {
    ...{ low, high, certificate: 'proven', risk: 'none', reason: 'every id range was read', sweepId: 1n },
    ...{ startedAt: new Date(0), completeThrough: new Date(0), last: new Uint8Array(32) },
    ...given,
  };
}

const density = { lowest: 101n, highest: 140n, counts: [3, 0, 1, 2], below: 0, above: 0 };

describe('a closed range', () => {
  test('is what an answer closed and no later one opened again, with its rule', () => {
    const records = [
      answer(1, { from: 1n, to: 100n, rows: 0, closed: [to(1n, 100n)] }),
      answer(2, { from: 101n, to: 120n, rows: 3, closed: [to(101n, 120n)] }),
      answer(3, { from: 121n, to: 121n, rows: 1, closed: [to(121n, 121n)] }),
      answer(4, {
        purpose: 'confirm',
        from: 122n,
        to: null,
        rows: 0,
        closed: [to(122n, null)],
        opened: [to(101n, 120n)],
      }),
    ];
    expect(findClosed(records)).toEqual([
      { from: 1n, to: 100n, how: 'empty', at: 1_000 },
      { from: 121n, to: 121n, how: 'single', at: 3_000 },
      { from: 122n, to: null, how: 'confirmed', at: 4_000 },
    ]);
  });
});

describe('the columns', () => {
  test('tile the axis from 1 without end, and count the applications of each part', () => {
    const columns = toColumns([certificate(1n, null)], () => [], density);
    expect(columns.map(({ from, to: end, applications }) => [from, end, applications])).toEqual([
      [1n, 100n, 0],
      [101n, 110n, 3],
      [111n, 120n, 0],
      [121n, 130n, 1],
      [131n, 140n, 2],
      [141n, null, 0],
    ]);
    expect(columns.map(({ isEdge }) => isEdge)).toEqual([true, false, false, false, false, true]);
  });

  test('tile it also where the parts are no whole number of ids', () => {
    const columns = toColumns([], () => [], { lowest: 1n, highest: 10n, counts: [1, 1, 1], below: 0, above: 0 });
    expect(columns.map(({ from, to: end }) => [from, end])).toEqual([
      [1n, 4n],
      [5n, 7n],
      [8n, 10n],
      [11n, null],
    ]);
  });

  test('count the few that lie far from all others before and after them', () => {
    const columns = toColumns([], () => [], { ...density, below: 1, above: 2 });
    expect(columns.map(({ applications }) => applications)).toEqual([1, 3, 0, 1, 2, 2]);
  });

  test('are drawn from any number of ranges', () => {
    const closed = Array.from({ length: 200_000 }, (_, at) => to(BigInt(at + 1), BigInt(at + 1)));
    const records = [answer(7, { from: 1n, to: null, rows: 200_000, closed })];
    const [first] = toColumns([certificate(1n, null)], () => records, null);
    expect(first).toMatchObject({ state: 'single', closedAt: 7_000 });
  });

  test('are open where no certificate reaches, in part or at all', () => {
    const columns = toColumns(
      [certificate(1n, 115n)],
      () => [answer(1, { from: 1n, to: 115n, rows: 3, closed: [to(1n, 115n)] })],
      density,
    );
    expect(columns.map(({ state }) => state)).toEqual(['short', 'short', 'open', 'open', 'open', 'open']);
    expect(toColumns([], () => [], null)).toMatchObject([{ from: 1n, to: null, state: 'open', certificate: null }]);
  });

  test('have the rule that closed most of them, and the time of the first', () => {
    const records = [
      answer(1, { from: 101n, to: 103n, rows: 0, closed: [to(101n, 103n)] }),
      answer(2, { from: 104n, to: null, rows: 9, closed: [to(104n, null)] }),
    ];
    const [, first] = toColumns([certificate(1n, null)], () => records, density);
    expect(first).toMatchObject({ state: 'short', closedAt: 1_000 });
  });

  test('say where ids were only shown, and where no evidence was kept', () => {
    const states = (given: Partial<ExportedCertificate>) =>
      new Set(toColumns([certificate(1n, null, given)], () => [], density).map(({ state }) => state));
    expect(states({})).toEqual(new Set(['shown']));
    expect(states({ last: null })).toEqual(new Set(['unrecorded']));
  });

  test('count the audits that asked there, once for each sweep', () => {
    const records = [
      answer(9, { purpose: 'audit', from: 112n, to: 118n, rows: 0 }),
      answer(10, { purpose: 'audit', from: 119n, to: 125n, rows: 2 }),
    ];
    const columns = toColumns([certificate(1n, 110n), certificate(111n, null)], () => records, density);
    expect(columns.map(({ audits }) => audits)).toEqual([0, 0, 2, 1, 0, 0]);
  });

  test('have the weakest certificate that touches them', () => {
    const columns = toColumns(
      [certificate(1n, 105n), certificate(106n, null, { certificate: 'assumed' })],
      () => [],
      density,
    );
    expect(columns.map((one) => one.certificate)).toEqual([
      'proven',
      'assumed',
      'assumed',
      'assumed',
      'assumed',
      'assumed',
    ]);
  });
});

test('the questions about an id are those over a range that holds it, without witnesses and audits', () => {
  const records = [
    answer(1, { from: 1n, to: null, rows: 9 }),
    answer(2, { from: 1n, to: 50n, rows: 0, closed: [to(1n, 50n)] }),
    answer(3, { from: 51n, to: null, rows: 3, closed: [to(51n, null)] }),
    answer(4, { purpose: 'witness', from: 1n, to: null, rows: 3 }),
    answer(5, { purpose: 'audit', from: 60n, to: 70n, rows: 3 }),
  ];
  expect(findQuestionsAbout(records, 60n).map(({ n }) => n)).toEqual([1, 3]);
});

test('every command of the page names the account', async () => {
  const many = (purpose: 'witness' | 'audit') =>
    Array.from({ length: 150 }, (_, n) => answer(n, { purpose, from: 1n, to: null, rows: 0 }));
  const records = [...many('witness'), ...many('audit')];
  const report = {
    ...{ at: new Date(0), advertiser: 'fern', advertiserId: 7n, certificates: [certificate(1n, null)], openRanges: 0 },
    ...{ records: new Map([[1n, records]]), density, history: [] },
  };
  const page = String(await renderProofPage({ report, names: ['fern', 'moss'], id: 5n, version: '1' }));
  expect(page).toMatch(/And 50 more witnesses[\s\S]*And 50 more audits/);
  const commands = [...page.matchAll(/intake prove [^<]*--export[^<]*/g)].map(([command]) => command);
  expect(commands).toHaveLength(3);
  expect(new Set(commands)).toEqual(new Set(['intake prove --advertiser fern --export proof.ndjson']));
});
