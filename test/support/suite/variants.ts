// Several cases of one behaviour, of which `npm test` runs the first.
import { test } from 'vitest';

/** `test.for`; all cases but the first are tagged `slow`, since they show the same once more. */
export function testFirst<Case>(cases: readonly Case[]) {
  return (name: string, run: (one: Case) => Promise<void>): void => {
    test.for(cases.slice(0, 1))(name, run);
    test.for(cases.slice(1))(name, { tags: ['slow'] }, run);
  };
}

/** How many random cases a property is tested with: a fifth of them in `npm test`. */
export const drawsOf = (runs: number): number => (process.env.TEST_DRAWS === 'all' ? runs : Math.ceil(runs / 5));
