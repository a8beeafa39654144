// Several cases of one behaviour, of which `npm test` runs the first.
import { test } from 'vitest';

/** `test.for`; all cases but the first are tagged `slow`, since they show the same once more. */
export function testFirst<Case>(cases: readonly Case[]) {
  return (name: string, run: (one: Case) => Promise<void>): void => {
    test.for(cases.slice(0, 1))(name, run);
    test.for(cases.slice(1))(name, { tags: ['slow'] }, run);
  };
}

export interface DrawsOf {
  readonly runs: number;
  readonly tags: string[];
}

/** The two tests of a property: a fifth of its random cases in `npm test`, all of them in `npm run test:all`. */
export const drawsOf = (runs: number): readonly DrawsOf[] => [
  { runs: Math.ceil(runs / 5), tags: [] },
  { runs, tags: ['slow'] },
];
