// How many random cases a property is tested with: a fifth of them in `npm test`, all of them in `npm run test:all`.

export interface DrawsOf {
  readonly runs: number;
  readonly tags: string[];
}

/** The two tests of a property; the second one carries `slow`. */
export const drawsOf = (runs: number): readonly DrawsOf[] => [
  { runs: Math.ceil(runs / 5), tags: [] },
  { runs, tags: ['slow'] },
];
