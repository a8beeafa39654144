// Each rule of docs/proof-format.md, broken once in a file over which every hash was computed anew: the checker refuses it, or accepts what
// only looks like it. forged-proofs.test.ts has the forgeries that need no rule of their own.
import { describe, expect, test } from 'vitest';
import { checkProof } from '../../examples/check-proof.ts';
import { startMs } from '../simulation/judge.ts';
import { kindNamed } from '../simulation/kinds.ts';
import { proveSweep, toProofLines } from '../simulation/simulated-proof.ts';
import { createMemory } from '../simulation/simulated-reader.ts';
import { forge, type Json } from '../support/forged-proof.ts';

const day = 86_400_000;

/** A first sweep and, a day later, a recheck of a list that stands still; `deleted` ids are stored that the source does not show. */
function prove(
  size: { rows: number; page: number },
  kind = 'friendly',
  deleted = 0,
): { first: string[]; again: string[] } {
  const server = kindNamed(kind).create(7, { startMs, still: true, ...size });
  const memory = createMemory(startMs);
  const first = toProofLines(proveSweep(server, memory, 1n, { seed: 1 }), memory);
  memory.now += day;
  const middle = [...memory.held.keys()].sort((a, b) => (a < b ? -1 : 1))[size.rows >> 1] ?? 0n;
  const free = Array.from({ length: 9 * deleted }, (_, nth) => middle + BigInt(nth)).filter(
    (id) => !memory.held.has(id),
  );
  for (const id of free.slice(0, deleted)) memory.held.set(id, { id, firstSeenAt: startMs, submittedAt: null });
  return { first, again: toProofLines(proveSweep(server, memory, 2n, { seed: 2, known: true }), memory) };
}

const { first, again } = prove({ rows: 400, page: 40 });
const { again: small } = prove({ rows: 80, page: 15 });
const { again: gone } = prove({ rows: 400, page: 40 }, 'friendly', 5);
const { first: nothing } = prove({ rows: 0, page: 40 });
const { first: walk } = prove({ rows: 200, page: 40 }, 'combine-or');

const isAnswer = ({ type }: Json) => type === 'answer';
const isRange = (line: Json) => isAnswer(line) && line.purpose === 'range';
const isWitness = (line: Json) => isAnswer(line) && line.purpose === 'witness';
const isClosing = (line: Json) => isAnswer(line) && line.closed === 'known';
const middleOf = (lines: readonly Json[], is: (line: Json) => boolean): Json => {
  const found = lines.filter(is);
  return found[found.length >> 1];
};
const rowsOf = (lines: readonly Json[]) => lines.filter(({ type }) => type === 'rows').flatMap(({ rows }) => rows);
const endOf = (lines: readonly Json[]) => lines.find(({ type }) => type === 'end');
const certificateOf = ([head]: readonly Json[]) => head.certificates[0];
const idsOf = (list = ''): bigint[] => {
  let last = 0n;
  return list === '' ? [] : list.split(' ').map((part) => (last += BigInt(part)));
};
const toList = (ids: readonly bigint[]) => ids.map((id, nth) => id - (ids[nth - 1] ?? 0n)).join(' ') || undefined;

type Edit = (lines: Json[]) => Json[] | undefined;
const set =
  (is: (line: Json) => boolean, members: object): Edit =>
  (lines) =>
    void Object.assign(middleOf(lines, is), members);
/** Puts lines behind the end of the sweep. */
const append =
  (...more: ((lines: Json[]) => Json)[]): Edit =>
  (lines) =>
    lines.toSpliced(lines.indexOf(endOf(lines)) + 1, 0, ...more.map((one) => one(lines)));
const claim = (certificate: string, risk: string): Edit => {
  return (lines) => void [endOf(lines), certificateOf(lines)].map((one) => Object.assign(one, { certificate, risk }));
};
/** Removes an id of the first page from the page that closes its range. */
const hideKnown: Edit = (lines) => {
  const known = idsOf(lines.find(isRange).ids);
  const closing = lines.find((line) => isClosing(line) && idsOf(line.ids).some((id) => known.includes(id)));
  const hidden = idsOf(closing.ids).find((id) => known.includes(id));
  closing.ids = toList(idsOf(closing.ids).filter((id) => id !== hidden));
  closing.hidden = String(hidden);
  return undefined;
};
const audit = (range: (id: bigint) => object, members: (id: string) => object) => (lines: Json[]) => {
  const [id] = rowsOf(lines)[50];
  return { type: 'audit', sentAt: startMs + day, tookMs: 5, bytes: 9, ...range(BigInt(id)), ...members(id) };
};
const around = (id: bigint) => ({ from: String(id - 1n), to: String(id + 1n) });
const alone = (id: bigint) => ({ from: String(id), to: String(id) });

test('the proofs that are changed here are accepted before', () => {
  const verdicts = [first, again, small, gone, nothing, walk].map((lines) => checkProof(lines));
  expect(verdicts.map(({ verdict }) => verdict)).toEqual([
    'proven',
    'proven',
    'assumed',
    'proven',
    'assumed',
    'assumed',
  ]);
  expect(verdicts.every(({ supported }) => supported)).toBe(true);
});

const broken: [what: string, verdict: string, lines: readonly string[], edit: Edit][] = [
  // The file
  ['another format', 'forged', again, (lines) => void Object.assign(lines[1], { format: 3 })],
  ['a line of another type', 'forged', again, append(() => ({ type: 'note' }))],
  ['a question of another purpose', 'forged', again, set(isAnswer, { purpose: 'look' })],
  ['a new id that is not shown', 'forged', again, set(isClosing, { new: '5' })],
  [
    'a question without an answer that closes',
    'forged',
    again,
    set(isClosing, { answer: 'unanswered', ids: undefined }),
  ],
  ['proven with a doubt', 'forged', again, claim('proven', 'doubt')],
  ['a range without ids', 'forged', again, set(isClosing, { from: '5', to: '4' })],
  ['two rows of one id', 'forged', again, (lines) => void lines.at(-1).rows.push(rowsOf(lines)[3])],
  [
    'a line of the sweep after the rows',
    'forged',
    again,
    (lines) => [...lines, { type: 'audit', sentAt: startMs, tookMs: 1 }],
  ],
  // Integrity
  ['a question a day before its sweep', 'forged', again, set(isAnswer, { sentAt: startMs - day })],
  ['a question two days after the export', 'forged', again, set(isAnswer, { sentAt: startMs + 4 * day })],
  [
    'people who were submitted after the sweep began',
    'forged',
    again,
    (lines) => {
      certificateOf(lines).completeThrough = lines[1].startedAt + 60_000;
      lines[1].recentFrom = String(Math.floor(certificateOf(lines).completeThrough / 1_000));
      return undefined;
    },
  ],
  [
    'an id that is called new twice',
    'forged',
    first,
    (lines) => set(isClosing, { new: middleOf(lines, isClosing).ids.split(' ')[0] })(lines),
  ],
  [
    'a certificate above its end',
    'forged',
    again,
    (lines) => void Object.assign(endOf(lines), { certificate: 'assumed', risk: 'harmless' }),
  ],
  // Replay
  ['an echo is absent', 'assumed', again, set(isAnswer, { echo: 'absent' })],
  ['an answer from a cache', 'assumed', again, set(isAnswer, { cached: true })],
  ['nothing without an empty list', 'assumed', again, set(isAnswer, { weakEmpty: true })],
  [
    'an id beyond the range',
    'unproven',
    again,
    (lines) => {
      const closing = middleOf(lines, isClosing);
      closing.ids = toList([...idsOf(closing.ids), BigInt(rowsOf(lines).at(-1)[0])]);
      return undefined;
    },
  ],
  [
    'a refused question',
    'unproven',
    again,
    (lines) => {
      const { from, to, sentAt, tookMs, type, purpose } = middleOf(lines, isClosing);
      const refused = { type, sentAt, tookMs, purpose, from, to, answer: 'refused', open: [[from, to]] };
      return lines.toSpliced(lines.indexOf(middleOf(lines, isClosing)), 0, refused);
    },
  ],
  ['a page lacks without a word what an earlier one has shown', 'unproven', again, hideKnown],
  [
    'a page of fewer than 16 rows has room',
    'unproven',
    small,
    (lines) => {
      for (const line of lines.filter(isRange)) line.largest &&= 1;
      const page = lines.find((line) => isRange(line) && line.open && line.ids && idsOf(line.ids).length < 8);
      return void Object.assign(page, { closed: 'known', open: undefined });
    },
  ],
  [
    'an empty page is nearly full',
    'unproven',
    small,
    set((line) => isAnswer(line) && line.closed === 'empty', { unreadable: 8 }),
  ],
  [
    'a page counts its rows twice',
    'unproven',
    again,
    (lines) => {
      const pages = lines.filter((line) => isRange(line) && line.to !== null && line.ids);
      const [largest] = pages.sort((a, b) => idsOf(b.ids).length - idsOf(a.ids).length);
      largest.ids = toList(idsOf(largest.ids).flatMap((id) => [id, id]));
      const closing = middleOf(lines, (line) => isClosing(line) && line !== largest);
      closing.unreadable = Math.ceil(idsOf(largest.ids).length / 3) - idsOf(closing.ids).length;
      return undefined;
    },
  ],
  [
    'pages are not measured after a pause',
    'unproven',
    again,
    (lines) => {
      const later = lines.slice(lines.indexOf(middleOf(lines, isClosing))).filter(isAnswer);
      for (const line of later) line.sentAt += 2 * day;
      lines[0].exportedAt += 2 * day;
      return undefined;
    },
  ],
  [
    'a witness shows an id outside of its question',
    'assumed',
    again,
    (lines) => {
      const witness = middleOf(lines, (line) => isWitness(line) && line.ids && line.to !== null);
      const [id] = rowsOf(lines).at(BigInt(witness.to) < BigInt(rowsOf(lines).at(-1)[0]) ? -1 : 0);
      return void Object.assign(witness, { ids: toList([...idsOf(witness.ids), BigInt(id)]) });
    },
  ],
  [
    'a gone id comes when it is asked alone',
    'assumed',
    gone,
    (lines) => {
      const witness = lines.find((line) => isWitness(line) && line.from === line.to);
      return void Object.assign(witness, { ids: witness.from });
    },
  ],
  [
    'a gone id is not asked alone',
    'unproven',
    gone,
    (lines) =>
      lines.toSpliced(
        lines.findIndex((line) => isWitness(line) && line.from === line.to),
        1,
      ),
  ],
  ['nothing was shown', 'assumed', nothing, claim('proven', 'none')],
  ['pages are short', 'assumed', small, claim('proven', 'none')],
  // Walks
  ['a walk is harmless', 'assumed', walk, claim('assumed', 'harmless')],
  [
    'a walk in no order',
    'unproven',
    walk,
    (lines) => {
      const page = middleOf(lines, (line) => line.purpose === 'walk' && line.ids);
      return void Object.assign(page, {
        ids: toList(
          idsOf(page.ids)
            .reverse()
            .toSpliced(0, 0, ...idsOf(page.ids)),
        ),
      });
    },
  ],
  [
    'a walk that skips',
    'unproven',
    walk,
    (lines) => set((line) => line.purpose === 'walk', { lacking: rowsOf(lines)[9][0] })(lines),
  ],
];

describe('a rule that is broken is noticed', () => {
  test.each(broken)('%s: %s', (what, verdict, lines, edit) => {
    const report = checkProof(forge(lines, edit));
    expect(`${what}: ${report.verdict}, ${report.supported}`).toBe(`${what}: ${verdict}, false`);
  });

  test.each([
    // The sweep's range, above and below it, below with a date, and the six widest gaps. Of two by date alone one is enough.
    ['of a list', again, 10],
    // Above three distances, and one by date alone.
    ['where nothing was shown', nothing, 4],
  ] as const)('each witness that is due %s', (_, lines, count) => {
    const parsed = lines.map((line) => JSON.parse(line));
    const places = parsed.flatMap((line, at) => (isWitness(line) ? [at] : []));
    const noticed = places.filter((at) => {
      const report = checkProof(forge(lines, (all) => all.toSpliced(at, 1)));
      return JSON.stringify(report).includes('was not asked');
    });
    expect(noticed).toHaveLength(count);
  });
});

const harmless: [what: string, edit: Edit][] = [
  ['an audit shows an id that had arrived', append(audit(around, (ids) => ({ ids, new: 'all', arrived: ids })))],
  [
    'an audit of one id with one bound lacked it',
    append(
      audit(
        (id) => ({ ...around(id), beforeId: null }),
        () => ({}),
      ),
      audit(alone, (ids) => ({ ids })),
    ),
  ],
  [
    'an audit of several ids shows what the one before it lacked',
    append(
      audit(around, () => ({})),
      audit(around, (ids) => ({ ids })),
    ),
  ],
  [
    'a page lacks an id that was erased since',
    (lines) => {
      hideKnown(lines);
      const { hidden } = lines.find((line) => line.hidden);
      return void rowsOf(lines)
        .find(([id]) => id === hidden)
        .splice(1);
    },
  ],
];

test.each(harmless)('%s, which is no contradiction', (_, edit) => {
  const forged = forge(again, (lines) => {
    const edited = edit(lines) ?? lines;
    // The audited id was stored just before.
    if (edited.some(({ type }) => type === 'audit')) rowsOf(edited)[50][1] = String((startMs + day) / 1_000);
    return edited;
  });
  expect(checkProof(forged)).toMatchObject({ verdict: 'proven', supported: true });
});
