import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { choices, unplayable } from '../../src/dev/sandbox/behaviour/choices.ts';

const page = readFileSync(new URL('../../docs/source-api.md', import.meta.url), 'utf8');
const numbered = page.slice(page.indexOf('## What is not said')).matchAll(/^\| (\d+) \|/gm);
const silences = Array.from(numbered, ([, number]) => Number(number));
const answered = new Set(Object.values(choices).map(({ silence }) => silence));

describe('silences of the API and choices of the sandbox', () => {
  test('the silences are counted from 1 without a gap', () => {
    expect(silences).toEqual(silences.map((_, index) => index + 1));
    expect(silences.length).toBeGreaterThan(40);
  });

  test('every silence has a choice that answers it, or a reason why none can, and never both', () => {
    const reasons = Object.keys(unplayable).map(Number);
    expect([...answered, ...reasons].toSorted((a, b) => a - b)).toEqual(silences);
  });

  test.each(Object.entries(choices))(
    '%s answers a silence that exists, and its default is one of its options',
    (_, choice) => {
      expect(choice.form.parse(choice.initial)).toEqual(choice.initial);
      expect(choice.meaning).toMatch(/\.$/);
    },
  );
});
