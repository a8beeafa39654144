// Each rule of docs/proof-format.md, broken once in a file over which every hash was computed anew, as a forger with time would: the checker
// refuses it, or accepts what only looks like it.
import { describe, expect, test } from 'vitest';
import { checkProof } from '../../../examples/check-proof.ts';
import { startMs } from '../../simulation/judge.ts';
import { proofDay, proveTwice } from '../../simulation/simulated-proof.ts';
import {
  append,
  certificateOf,
  claim,
  type Edit,
  endOf,
  forge,
  hide,
  idsOf,
  isAnswer,
  isClosing,
  isRange,
  isSplit,
  isWitness,
  type Json,
  middleOf,
  rowsOf,
  set,
  toList,
} from '../../support/forged-proof.ts';

const { first, again } = proveTwice({ rows: 400, page: 40 });
const { again: small } = proveTwice({ rows: 80, page: 15 });
const { again: gone } = proveTwice({ rows: 400, page: 40 }, 'friendly', 5);
const { first: nothing } = proveTwice({ rows: 0, page: 40 });
const { first: walk } = proveTwice({ rows: 200, page: 40 }, 'combine-or');

/** Removes an id of the first page from the page that closes its range. */
const hideKnown: Edit = (lines) => {
  const known = idsOf(lines.find(isRange).ids);
  const closing = lines.find((line) => isClosing(line) && idsOf(line.ids).some((id) => known.includes(id)));
  const hidden = String(idsOf(closing.ids).find((id) => known.includes(id)));
  hide([closing], hidden);
  return void Object.assign(closing, { hidden });
};
const audit = (range: (id: bigint) => object, members: (id: string) => object) => (lines: Json[]) => {
  const [id] = rowsOf(lines)[50];
  return { type: 'audit', sentAt: startMs + proofDay, tookMs: 5, bytes: 9, ...range(BigInt(id)), ...members(id) };
};
const around = (id: bigint) => ({ from: String(id - 1n), to: String(id + 1n) });
const alone = (id: bigint) => ({ from: String(id), to: String(id) });
/** The row in the middle of the stored ones was stored at this time. */
const storeAt = (lines: Json[], ms: number) => void Object.assign(rowsOf(lines)[50], { 1: String(ms / 1_000) });

test('the proofs that are changed here are accepted before', () => {
  const verdicts = [first, again, small, gone, nothing, walk].map((lines) => checkProof(lines));
  expect(verdicts.map(({ verdict }) => verdict)).toEqual([
    ...['proven', 'proven', 'assumed', 'proven', 'assumed', 'assumed'],
  ]);
  expect(verdicts.every(({ supported }) => supported)).toBe(true);
});

const inHead =
  (members: object): Edit =>
  (lines) =>
    void Object.assign(certificateOf(lines), members);
const inSweep =
  (members: object): Edit =>
  (lines) =>
    void Object.assign(lines[1], members);
const inEnd =
  (members: object): Edit =>
  (lines) =>
    void Object.assign(endOf(lines), members);

/** Edits of the recheck, unless they name another proof. */
const broken: [what: string, verdict: string, edit: Edit, lines?: readonly string[]][] = [
  // The file
  ['another format', 'forged', inSweep({ format: 3 })],
  ['a line of another type', 'forged', append(() => ({ type: 'note' }))],
  ['a question of another purpose', 'forged', set(isAnswer, { purpose: 'look' })],
  ['a new id that is not shown', 'forged', set(isClosing, { new: '5' })],
  ['no answer, which closes', 'forged', set(isClosing, { answer: 'unanswered', ids: undefined })],
  ['proven with a doubt', 'forged', claim('proven', 'doubt')],
  ['a range without ids', 'forged', set(isClosing, { from: '5', to: '4' })],
  ['two rows of one id', 'forged', (lines) => void lines.at(-1).rows.push(rowsOf(lines)[3])],
  ['a line after the rows', 'forged', (lines) => [...lines, { type: 'audit', sentAt: startMs, tookMs: 1 }]],
  ['no end', 'forged', (lines) => lines.filter(({ type }) => type !== 'end')],
  ['an answer after the end', 'forged', append((lines) => structuredClone(middleOf(lines, isAnswer)))],
  // Integrity
  ['a question a day before its sweep', 'forged', set(isAnswer, { sentAt: startMs - proofDay })],
  ['a question two days after the export', 'forged', set(isAnswer, { sentAt: startMs + 4 * proofDay })],
  [
    'people who were submitted after the sweep began',
    'forged',
    (lines) => {
      certificateOf(lines).completeThrough = lines[1].startedAt + 60_000;
      lines[1].recentFrom = String(Math.floor(certificateOf(lines).completeThrough / 1_000));
      return undefined;
    },
  ],
  ['an id that is called new twice', 'forged', set(isClosing, ({ ids }) => ({ new: ids.split(' ')[0] })), first],
  ['all ids that are called new twice', 'forged', set(isClosing, { new: 'all' })],
  ['an id that is not stored', 'forged', set(isWitness, { ids: '99999999' })],
  ['a stored row that is taken out', 'forged', (lines) => void lines.at(-1).rows.splice(50, 1)],
  ['a row that was stored after the recheck', 'forged', (lines) => storeAt(lines, startMs + 3 * proofDay)],
  ['a row that was stored after the first sweep', 'forged', (lines) => storeAt(lines, startMs + proofDay), first],
  ['a stored id that no answer shows', 'forged', (lines) => void hide(lines, rowsOf(lines)[50][0])],
  ['a sweep of another advertiser', 'forged', inSweep({ advertiser: '8' })],
  ['a certificate above its end', 'forged', inEnd({ certificate: 'assumed', risk: 'harmless' })],
  ['a certificate of more ids', 'forged', inSweep({ from: '2' })],
  ['a certificate with another reason', 'forged', inHead({ reason: 'trust me' })],
  ['a certificate that reaches further', 'forged', inHead({ completeThrough: startMs + proofDay })],
  ['a sweep that began later', 'forged', inSweep({ startedAt: startMs + 9e7 })],
  // Replay
  ['a closing that is taken out', 'unproven', (lines) => lines.toSpliced(lines.findIndex(isClosing), 1)],
  ['a split page that closes', 'unproven', set(isSplit, { closed: 'known', open: undefined })],
  ['a closing by another rule', 'unproven', set(isClosing, { closed: 'empty' })],
  [
    'a closing that covers less than it says',
    'unproven',
    set(isClosing, ({ from }) => ({ afterId: String(BigInt(from) + 5n) })),
  ],
  [
    'a closing that lacks a stored id',
    'unproven',
    set(isClosing, ({ ids }) => ({ ids: toList(idsOf(ids).slice(1)), lacking: String(idsOf(ids)[0]) })),
  ],
  ['a closing with more rows than it may have', 'unproven', set(isClosing, { unreadable: 30 })],
  [
    'a closing with more bytes than it may have',
    'unproven',
    set(isClosing, (_, lines) => ({ bytes: Math.max(...lines.filter(isAnswer).map(({ bytes = 0 }) => bytes)) })),
  ],
  [
    'a closing that shows somebody new',
    'unproven',
    (lines) => {
      const closing = middleOf(lines, isClosing);
      const [id] = closing.ids.split(' ');
      const before = lines.slice(0, lines.indexOf(closing));
      hide(before, id);
      for (const line of before)
        if (![undefined, 'all'].includes(line.new))
          line.new = toList(idsOf(line.new).filter((one) => String(one) !== id));
      return void Object.assign(closing, { new: id });
    },
    first,
  ],
  ['a split that leaves a part out', 'unproven', set(isSplit, ({ open }) => ({ open: open.slice(0, -1) }))],
  [
    'a split that moves a part',
    'unproven',
    set(isSplit, ({ open: [[from, to], ...rest] }) => ({ open: [[String(BigInt(from) + 1n), to], ...rest] })),
  ],
  ['an echo that differs', 'unproven', set(isAnswer, { echo: 'differs' })],
  ['an echo is absent', 'assumed', set(isAnswer, { echo: 'absent' })],
  ['an answer from a cache', 'assumed', set(isAnswer, { cached: true })],
  ['nothing without an empty list', 'assumed', set(isAnswer, { weakEmpty: true })],
  [
    'an id beyond the range',
    'unproven',
    set(isClosing, ({ ids }, lines) => ({ ids: toList([...idsOf(ids), BigInt(rowsOf(lines).at(-1)[0])]) })),
  ],
  [
    'a refused question',
    'unproven',
    (lines) => {
      const { from, to, sentAt, tookMs, type, purpose } = middleOf(lines, isClosing);
      const refused = { type, sentAt, tookMs, purpose, from, to, answer: 'refused', open: [[from, to]] };
      return lines.toSpliced(lines.indexOf(middleOf(lines, isClosing)), 0, refused);
    },
  ],
  ['a page lacks without a word what an earlier one has shown', 'unproven', hideKnown],
  [
    'a page of fewer than 16 rows has room',
    'unproven',
    (lines) => {
      for (const line of lines.filter(isRange)) line.largest &&= 1;
      const page = lines.find((line) => isRange(line) && line.open && line.ids && idsOf(line.ids).length < 8);
      return void Object.assign(page, { closed: 'known', open: undefined });
    },
    small,
  ],
  [
    'an empty page is nearly full',
    'unproven',
    set((line) => isAnswer(line) && line.closed === 'empty', { unreadable: 8 }),
    small,
  ],
  [
    'a page counts its rows twice',
    'unproven',
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
    (lines) => {
      const later = lines.slice(lines.indexOf(middleOf(lines, isClosing))).filter(isAnswer);
      for (const line of later) line.sentAt += 2 * proofDay;
      lines[0].exportedAt += 2 * proofDay;
      return undefined;
    },
  ],
  ['the end leaves a range open', 'unproven', inEnd({ open: [['5', '9']] })],
  ['the end names ids as absent', 'unproven', inEnd({ absent: 3 })],
  // Witnesses and audits
  [
    'a witness shows an id outside of its question',
    'assumed',
    (lines) => {
      const witness = middleOf(lines, (line) => isWitness(line) && line.ids && line.to !== null);
      const [id] = rowsOf(lines).at(BigInt(witness.to) < BigInt(rowsOf(lines).at(-1)[0]) ? -1 : 0);
      return void Object.assign(witness, { ids: toList([...idsOf(witness.ids), BigInt(id)]) });
    },
  ],
  [
    'a witness shows an id that was hidden',
    'unproven',
    (lines) => {
      const witness = middleOf(lines, (line) => isWitness(line) && line.ids !== undefined);
      const [id] = witness.ids.split(' ');
      hide(lines.slice(0, lines.indexOf(witness)), id);
      rowsOf(lines).find(([stored]) => stored === id)[1] = String((startMs + proofDay) / 1_000);
      return void Object.assign(witness, { new: id });
    },
  ],
  [
    'a gone id comes when it is asked alone',
    'assumed',
    (lines) => {
      const witness = lines.find((line) => isWitness(line) && line.from === line.to);
      return void Object.assign(witness, { ids: witness.from });
    },
    gone,
  ],
  [
    'a gone id is not asked alone',
    'unproven',
    (lines) => {
      const at = lines.findIndex((line) => isWitness(line) && line.from === line.to);
      return lines.toSpliced(at, 1);
    },
    gone,
  ],
  [
    'an audit shows somebody new',
    'unproven',
    (lines) => {
      storeAt(lines, startMs + proofDay);
      hide(lines, rowsOf(lines)[50][0]);
      return append(
        audit(
          () => ({ from: '1', to: null }),
          (ids) => ({ ids, new: 'all' }),
        ),
      )(lines);
    },
  ],
  [
    'an audit shows an id that the one before it left out',
    'unproven',
    append(
      audit(
        (id) => ({ ...alone(id), from: String(id - 1n) }),
        () => ({}),
      ),
      audit(alone, (ids) => ({ ids })),
    ),
  ],
  ['nothing was shown', 'assumed', claim('proven', 'none'), nothing],
  ['pages are short', 'assumed', claim('proven', 'none'), small],
  // Walks
  ['a walk is harmless', 'assumed', claim('assumed', 'harmless'), walk],
  [
    'a walk in no order',
    'unproven',
    set(
      (line) => line.purpose === 'walk' && line.ids,
      ({ ids }) => ({ ids: toList([...idsOf(ids), ...idsOf(ids).reverse()]) }),
    ),
    walk,
  ],
  [
    'a walk that skips',
    'unproven',
    set(
      (line) => line.purpose === 'walk',
      (_, lines) => ({ lacking: rowsOf(lines)[9][0] }),
    ),
    walk,
  ],
];

describe('a rule that is broken is noticed', () => {
  test.each(broken)('%s: %s', (what, verdict, edit, lines = again) => {
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

const none = () => ({});
const harmless: [what: string, edit: Edit][] = [
  ['an audit shows an id that had arrived', append(audit(around, (ids) => ({ ids, new: 'all', arrived: ids })))],
  [
    'an audit of one id with one bound lacked it',
    append(
      audit((id) => ({ ...around(id), beforeId: null }), none),
      audit(alone, (ids) => ({ ids })),
    ),
  ],
  [
    'an audit of several ids shows what the one before it lacked',
    append(
      audit(around, none),
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
    if (edited.some(({ type }) => type === 'audit')) storeAt(edited, startMs + proofDay);
    return edited;
  });
  expect(checkProof(forged)).toMatchObject({ verdict: 'proven', supported: true });
});
