// The simulated list servers themselves: the same seed is the same server. Whether a kind keeps what it claims shows in
// coverage-simulation.test.ts, where nobody may be lost.
import { describe, expect, it } from 'vitest';
import { Draws } from '../../simulation/draws.ts';
import { defaultStartMs, type Kind, type ListRequest } from '../../simulation/hidden-server.ts';
import { kindNamed, kinds } from '../../simulation/kinds.ts';

const everything: ListRequest = { afterId: null, beforeId: null, afterDate: null, beforeDate: null };

/** Questions of every shape, narrow and wide, some of them twice. */
function toQuestions(ids: readonly bigint[], draws: Draws, count: number): ListRequest[] {
  const lowest = ids[0] ?? 1n;
  const bound = () => (ids[draws.int(0, Math.max(0, ids.length - 1))] ?? lowest) + BigInt(draws.int(-1, 1));
  const questions: ListRequest[] = [];
  for (let left = count; left > 0; left--) {
    const [one, other] = [bound(), bound()];
    const [low, high] = one < other ? [one, other] : [other, one];
    const shape = draws.int(0, 6);
    if (shape === 0) questions.push(everything);
    else if (shape === 1) questions.push({ ...everything, afterId: one });
    else if (shape === 2) questions.push({ ...everything, beforeId: one });
    else if (shape === 3 && left < count) questions.push(questions[draws.int(0, questions.length - 1)] ?? everything);
    else questions.push({ ...everything, afterId: low, beforeId: high });
  }
  return questions;
}

const seeds = Array.from({ length: 8 }, (_, at) => at + 1);

/** Answers over a sweep, a night and some minutes, as text. */
function record(kind: Kind, seed: number): string {
  const server = kind.create(seed);
  const draws = new Draws(`record ${seed}`);
  const lines: string[] = [];
  let at = defaultStartMs + 1000;
  const note = (question: ListRequest) => {
    at += draws.int(1, 900);
    const { status, rows, bytes, echo, age } = server.list(question, at);
    lines.push(
      [
        status,
        rows.map((row) => `${row.unreadable ?? ''}${row.id}@${row.submittedAt}`).join(' '),
        bytes,
        echo,
        age,
      ].join('|'),
    );
  };
  for (const pass of [() => undefined, () => server.passNight(at), () => server.passMinutes(at)]) {
    at += 40_000_000;
    pass();
    for (const question of toQuestions(server.presentAt(at), draws, 25)) note(question);
    const day = Math.floor(at / 1000) - draws.int(0, 200 * 86_400);
    note({ ...everything, afterDate: day });
    note({ ...everything, beforeDate: day });
    note({ afterId: server.presentAt(at)[0] ?? 0n, beforeId: null, afterDate: day, beforeDate: day + 7 * 86_400 });
    lines.push(server.presentAt(at).join(' '));
  }
  return lines.join('\n');
}

describe('the hidden servers', { tags: ['slow'] }, () => {
  it('give the same answers for the same seed, and each kind others than the friendly one in some seed', () => {
    const [friendly] = kinds;
    const answers = seeds.map((seed) => record(kindNamed('friendly'), seed));
    for (const kind of kinds) {
      expect(record(kind, 7), kind.name).toBe(record(kind, 7));
      const isOther = seeds.some((seed, at) => record(kind, seed) !== answers[at]);
      expect(isOther, kind.name).toBe(kind !== friendly);
    }
  });

  it('know which rows were there all the time', () => {
    for (const seed of seeds) {
      const server = kindNamed('churn').create(seed);
      const from = defaultStartMs + 1000;
      const first = server.presentAt(from);
      const last = new Set(server.presentAt(from + 30_000));
      const throughout = server.presentThroughout(from, from + 30_000);
      expect(throughout).toEqual(first.filter((id) => last.has(id)));
      server.passNight(from + 40_000_000);
      expect(server.presentThroughout(from, from + 30_000)).toEqual(throughout);
    }
  });
});
