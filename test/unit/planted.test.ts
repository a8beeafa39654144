// The mistakes that the fault harness must find can be planted: each edit meets its line, once.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { planted } from '../chaos/planted.ts';

const edits = Object.entries(planted).flatMap(([name, { edits: of }]) => of.map((edit) => ({ name, ...edit })));

test.each(edits)('$name has its line in $file', ({ file, before }) => {
  expect(readFileSync(file, 'utf8').split(before)).toHaveLength(2);
});
