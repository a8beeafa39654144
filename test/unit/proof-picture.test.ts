// The picture of a proof: every part of the axis has a column, and a column says what its lines say. And the page around it.
import { describe, expect, test } from 'vitest';
import { coveredOf } from '../../src/domain/coverage/covered.ts';
import { wholeAxis } from '../../src/domain/coverage/position.ts';
import { findQuestionsAbout, toColumns } from '../../src/domain/evidence/picture.ts';
import type { AnswerLine, ExportedCertificate } from '../../src/domain/evidence/record.ts';
import { renderProofPage } from '../../src/web/admin/proof-page.ts';

/** A question about ids, and the rule by which its answer closed them. */
function answer(n: number, from: bigint, to: bigint | null, given: Partial<AnswerLine> = {}): AnswerLine {
  const bounds = { from: String(from), to: to === null ? null : String(to) };
  const asked = given.type === 'audit' ? {} : ({ purpose: 'range' } as const);
  return { n, type: 'answer', ...asked, sentAt: 1_000 * n, tookMs: 5, bytes: 10, ...bounds, ...given };
}

function certificate(low: bigint, high: bigint | null, given: Partial<ExportedCertificate> = {}): ExportedCertificate {
  return {
    ...{ low, high, certificate: 'proven', risk: 'none', reason: 'every id range was read', sweepId: 1n },
    ...{ startedAt: new Date(0), completeThrough: new Date(0), last: '0'.repeat(64) },
    ...given,
  };
}

const density = { lowest: 101n, highest: 140n, counts: [0, 3, 0, 1, 2, 0] };

describe('the columns', () => {
  test('tile the axis from 1 without end, and count the applications of each part', () => {
    const columns = toColumns([certificate(1n, null)], [], density);
    expect(columns.map((column) => [column.from, coveredOf(column).high, column.applications])).toEqual([
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
    const columns = toColumns([], [], { lowest: 1n, highest: 10n, counts: [0, 1, 1, 1, 0] });
    expect(columns.map((column) => [column.from, coveredOf(column).high])).toEqual([
      [1n, 4n],
      [5n, 7n],
      [8n, 10n],
      [11n, null],
    ]);
  });

  test('count the few that lie far from all others before and after them', () => {
    const columns = toColumns([], [], { ...density, counts: [1, 3, 0, 1, 2, 2] });
    expect(columns.map(({ applications }) => applications)).toEqual([1, 3, 0, 1, 2, 2]);
  });

  test('are drawn from any number of audits', () => {
    const audits = Array.from({ length: 200_000 }, (_, at) =>
      answer(7, BigInt(at + 1), BigInt(at + 1), { type: 'audit' }),
    );
    const [first] = toColumns([certificate(1n, null)], audits, null);
    expect(first).toMatchObject({ state: 'closed', audits: 200_000 });
  });

  test('are open where no certificate reaches, in part or at all', () => {
    const columns = toColumns([certificate(1n, 115n)], [], density);
    expect(columns.map(({ state }) => state)).toEqual(['closed', 'closed', 'open', 'open', 'open', 'open']);
    expect(toColumns([], [], null)).toMatchObject([{ ...wholeAxis, state: 'open' }]);
  });

  test('are closed by several certificates together', () => {
    const columns = toColumns([certificate(1n, 112n), certificate(113n, null, { last: null })], [], density);
    expect(new Set(columns.map(({ state }) => state))).toEqual(new Set(['closed']));
  });

  test('count the audits that asked there', () => {
    const records = [answer(9, 112n, 118n, { type: 'audit' }), answer(10, 119n, 125n, { type: 'audit' })];
    const columns = toColumns([certificate(1n, 110n), certificate(111n, null)], records, density);
    expect(columns.map(({ audits }) => audits)).toEqual([0, 0, 2, 1, 0, 0]);
  });
});

test('the questions about an id are those over a range that holds it, without witnesses and audits', () => {
  const records = [
    answer(1, 1n, null, { ids: '5 60' }),
    answer(2, 1n, 50n, { closed: 'empty' }),
    answer(3, 51n, null, { closed: 'known' }),
    answer(4, 1n, null, { purpose: 'witness' }),
    answer(5, 60n, 70n, { type: 'audit' }),
  ];
  expect(findQuestionsAbout(records, 60n).map(({ n }) => n)).toEqual([1, 3]);
});

test('every command of the page names the account', async () => {
  const many = (given: Partial<AnswerLine>) => Array.from({ length: 150 }, (_, n) => answer(n, 1n, null, given));
  const answers = [...many({ purpose: 'witness' }), ...many({ type: 'audit' })];
  const report = {
    ...{ at: new Date(0), advertiser: 'fern', advertiserId: 7n, certificates: [certificate(1n, null)], openRanges: 0 },
    ...{ answers: new Map([[1n, answers]]), density, history: [] },
  };
  const page = String(await renderProofPage(report, 5n, ['fern', 'moss'], '1'));
  expect(page).toMatch(/And 50 more witnesses[\s\S]*And 50 more audits/);
  const commands = [...page.matchAll(/intake prove [^<]*--export[^<]*/g)].map(([command]) => command);
  expect(commands).toHaveLength(3);
  expect(new Set(commands)).toEqual(new Set(['intake prove --advertiser fern --export proof.ndjson']));
});
