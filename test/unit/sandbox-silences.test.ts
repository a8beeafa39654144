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

  test('every silence has a choice that answers it, or a reason why none can', () => {
    const open = silences.filter((silence) => !answered.has(silence) && unplayable[silence] === undefined);
    expect(open).toEqual([]);
  });

  test('no silence is both answered and called unplayable', () => {
    expect(Object.keys(unplayable).filter((silence) => answered.has(Number(silence)))).toEqual([]);
  });

  test.each(Object.entries(choices))(
    '%s answers a silence that exists, and its default is one of its options',
    (_, choice) => {
      expect(silences).toContain(choice.silence);
      expect(choice.form.parse(choice.initial)).toEqual(choice.initial);
      expect(choice.meaning).toMatch(/\.$/);
    },
  );

  test('every unplayable silence exists', () => {
    expect(silences).toEqual(expect.arrayContaining(Object.keys(unplayable).map(Number)));
  });
});
