// @module-tag slow
// The new kernel of the coverage logic beside the old one, on the same hidden servers. The old one goes when the new one is in the product.
import { expect, test } from 'vitest';
import type { Kind } from '../simulation/hidden-server.ts';
import { isCrowded, type JudgedSweep, judgeSeed, openSeed, type Verdict } from '../simulation/judge.ts';
import { judgeKernelSeed } from '../simulation/kernel-judge.ts';
import { kinds } from '../simulation/kinds.ts';

const keepsAll = ({ keeps }: Kind) => keeps.filtersBeforeCap && keeps.capAboveHalf && keeps.oneCurrentList;
const calm = kinds.filter(({ name }) => !/churn|mix-order-modified/.test(name));

/** The sweeps of the servers of these kinds, one seed each, that are wrong in this way. */
function find(
  list: readonly Kind[],
  seed: number,
  judge: (kind: Kind, seed: number) => Verdict,
  isWrong: (sweep: JudgedSweep) => boolean,
): string[] {
  return list
    .filter((kind) => !isCrowded(openSeed(kind, seed).server))
    .flatMap((kind) =>
      judge(kind, seed)
        .sweeps.filter(isWrong)
        .map(({ name, reason, lost }) => `${kind.name} ${seed}: ${name} (${reason}), ${lost} lost`),
    );
}

test.for([0, 1])('the new kernel loses nobody whom it calls read where the assumptions hold: seed %d', (seed) => {
  const wrong = find(calm.filter(keepsAll), seed, judgeKernelSeed, (sweep) => sweep.isFalseProof || sweep.isSilentLoss);
  expect(wrong).toEqual([]);
});

test('where they do not hold, the new kernel is wrong no more often than the old one', () => {
  const broken = calm.filter((kind) => !keepsAll(kind));
  const isWrong = (sweep: JudgedSweep) => sweep.name !== 'poll' && (sweep.isFalseProof || sweep.isSilentLoss);
  const count = (judge: (kind: Kind, seed: number) => Verdict) =>
    [0, 1].flatMap((seed) => find(broken, seed, judge, isWrong)).length;
  expect(count(judgeKernelSeed)).toBeLessThanOrEqual(count(judgeSeed));
});
