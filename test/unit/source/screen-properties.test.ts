// What holds for every screen: JSON and XML are the same content however they are written, and part of a screen is never
// taken for a shorter one.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Trouble } from '../../../src/domain/trouble.ts';
import { parseScreens, screenParserVersion } from '../../../src/source/parse/screen.ts';
import { type Pick, renderScreensJson, renderScreensXml, screenLists } from '../../support/screens.ts';
import { drawsOf } from '../../support/suite/variants.ts';

const renderers = { JSON: renderScreensJson, XML: renderScreensXml };

function toPick(gen: fc.GeneratorValue): Pick {
  return (...ways) => ways[gen(fc.nat, { max: ways.length - 1 })] as (typeof ways)[number];
}

/** Bytes as a server may send them. */
function encode(text: string, pick: Pick): Buffer {
  return pick(
    () => Buffer.from(text),
    () => Buffer.from(`\ufeff${text}`),
    () => Buffer.from(`\ufeff${text.replace('encoding="utf-8"', 'encoding="utf-16"')}`, 'utf16le'),
  )();
}

const contentTypes = [undefined, 'application/json; charset=utf-8', 'application/xml; charset=utf-8', 'text/html'];

describe.for(['JSON', 'XML'] as const)('a screen in %s', (form) => {
  test('is read to the value it was written from, in whatever shape', () => {
    fc.assert(
      fc.property(screenLists, fc.gen(), (screens, gen) => {
        const pick = toPick(gen);
        const body = encode(renderers[form](screens, pick), pick);
        expect(parseScreens(body, pick(...contentTypes))).toEqual({ screens, parserVersion: screenParserVersion });
      }),
      { numRuns: drawsOf(500) },
    );
  });

  test('is refused when it ends early, wherever that is', () => {
    fc.assert(
      fc.property(screenLists, fc.gen(), (screens, gen) => {
        const pick = toPick(gen);
        const body = encode(renderers[form](screens, pick), pick);
        for (let end = 0; end < body.length; end += gen(fc.integer, { min: 1, max: 60 })) {
          expect(() => parseScreens(body.subarray(0, end), undefined)).toThrow(Trouble);
        }
      }),
      { numRuns: drawsOf(100) },
    );
  });
});
