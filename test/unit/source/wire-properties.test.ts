// What holds for every list: JSON and XML are the same content, and part of a list is never taken for a shorter one.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Trouble } from '../../../src/domain/trouble.ts';
import { parseElement, parsePage, scanIds } from '../../../src/source/parse/list.ts';
import { drawsOf } from '../../support/suite/variants.ts';

type Members = Readonly<Record<string, unknown>>;

// Texts that both forms can carry: XML has no way to write most control characters, nor half a surrogate pair.
const text = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .map((value) => value.replaceAll(/\p{Cc}|\p{Cs}|[\ufffe\uffff]/gu, ''))
  .chain((value) => fc.constantFrom(value, ` ${value}`, `${value}\n<&>"'`, '0412345678', '1e5', '007'));
const offset = fc.constantFrom('+1100', '+1000', '+0000', '-0330');
const date = fc
  .tuple(fc.integer({ min: -1_000_000_000_000, max: 4_000_000_000_000 }), fc.option(offset, { nil: '' }))
  .map(([ms, zone]) => `/Date(${ms}${zone})/`);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });

const attachment = fc.record(
  {
    DateUploaded: optional(date),
    HasVirus: optional(fc.boolean()),
    Hash: optional(text),
    Href: optional(text),
    Size: optional(fc.maxSafeNat()),
    Type: fc.constantFrom('resume', 'coverLetter', 'selectionCriteria', 'screen', 'Portfolio', null),
  },
  { requiredKeys: [] },
);

const application = fc.record(
  {
    ID: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    DateSubmitted: optional(date),
    Email: optional(text),
    FirstName: optional(text),
    LastName: optional(text),
    Phone: optional(text),
    JobSeekerID: optional(text),
    JobReference: optional(text),
    Attachments: optional(fc.array(attachment, { maxLength: 4 })),
    PrimaryJobSeekingInfo: optional(
      fc.record(
        {
          JobTitle: optional(text),
          CompanyName: optional(text),
          TimeInRole: optional(fc.nat()),
          IsNewToWorkForce: optional(fc.boolean()),
        },
        { requiredKeys: [] },
      ),
    ),
    // Members that no one told us of.
    Extra: fc.oneof(text, fc.boolean(), fc.integer(), date, fc.constant(null), fc.constant(1.5)),
    ExtraList: fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
    ExtraObject: fc.record({ Zeta: text, Alpha: fc.array(fc.integer(), { maxLength: 2 }) }),
  },
  { requiredKeys: ['ID'] },
);

const listElements: Readonly<Record<string, string>> = {
  JobApplicationsList: 'JobApplication',
  Attachments: 'Attachment',
};

function renderXml(name: string, value: unknown): string {
  if (value === null) return `<${name} i:nil="true"/>`;
  if (Array.isArray(value)) {
    return `<${name}>${value.map((entry) => renderXml(listElements[name] ?? 'anyType', entry)).join('')}</${name}>`;
  }
  if (typeof value === 'object') {
    const children = Object.entries(value as Members).map(([key, child]) => renderXml(key, child));
    return `<${name}>${children.join('')}</${name}>`;
  }
  return `<${name}>${renderScalar(value)}</${name}>`;
}

function renderScalar(value: unknown): string {
  const moment = typeof value === 'string' ? /^\/Date\((-?\d+)(?:([+-])(\d\d)(\d\d))?\)\/$/.exec(value) : null;
  if (moment === null) {
    return String(value).replaceAll(/[<&>"'\n]/g, (character) => `&#${character.charCodeAt(0)};`);
  }
  const [, ms, sign, hours, minutes] = moment;
  if (sign === undefined) return new Date(Number(ms)).toISOString();
  const offsetMs = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  return new Date(Number(ms) + offsetMs).toISOString().replace('Z', `${sign}${hours}:${minutes}`);
}

function toBodies(applications: readonly Members[]): { json: string; xml: string } {
  const envelope = { AdvertiserID: 7, AfterDate: null, AfterID: '3', JobApplicationsList: applications };
  const root = renderXml('JobApplications', envelope).replace(
    '>',
    ' xmlns:i="http://www.w3.org/2001/XMLSchema-instance">',
  );
  return {
    json: JSON.stringify({ JobApplications: envelope }),
    xml: `<?xml version="1.0" encoding="utf-8"?>${root}`,
  };
}

describe('for every list', () => {
  test('JSON and XML give the same applications, facts, hashes and raw objects', () => {
    fc.assert(
      fc.property(fc.array(application, { maxLength: 4 }), (applications) => {
        const bodies = toBodies(applications);
        const [json, xml] = [parsePage(bodies.json), parsePage(bodies.xml)];
        const facts = (page: typeof json) => page.applications.map(({ raw: _, ...rest }) => rest);
        expect(facts(xml)).toEqual(facts(json));
        expect(xml.ids).toEqual(json.ids);
        expect(xml.echo).toEqual(json.echo);
        // Members that are known lie in raw in the same form.
        const known = toBodies(applications.map(({ Extra: _a, ExtraList: _b, ExtraObject: _c, ...rest }) => rest));
        const [raw, twin] = [known.json, known.xml].map((body) => parsePage(body).applications.map((one) => one.raw));
        expect(twin?.map((text) => JSON.parse(text))).toEqual(raw?.map((text) => JSON.parse(text)));
      }),
      { numRuns: drawsOf(300) },
    );
  });

  test('a changed fact changes the hash, null for absent does not', () => {
    fc.assert(
      fc.property(application, fc.constantFrom('Email', 'Phone', 'DateSubmitted', 'Extra'), (element, member) => {
        const hashOf = (members: Members) => parsePage(toBodies([members]).json).applications[0]?.contentHash;
        const { [member]: _, ...without } = element as Members;
        expect(hashOf({ ...without, [member]: null })).toBe(hashOf(without));
        expect(hashOf({ ...without, [member]: '/Date(5000000000000+1000)/' })).not.toBe(hashOf(without));
        expect(hashOf({ ...without, DateSubmitted: '/Date(5000+1000)/' })).not.toBe(
          hashOf({ ...without, DateSubmitted: '/Date(5000+1100)/' }),
        );
      }),
    );
  });

  test('no proper prefix of a body is read', () => {
    fc.assert(
      fc.property(fc.array(application, { minLength: 1, maxLength: 2 }), (applications) => {
        for (const body of Object.values(toBodies(applications))) {
          parsePage(body);
          for (let length = 1; length < body.length; length++) {
            const prefix = body.slice(0, length);
            expect(() => parsePage(prefix), `${length} of ${body.length}`).toThrow(Trouble);
          }
        }
      }),
      { numRuns: drawsOf(6) },
    );
  });
});

// Even numbers just above 2^53 and multiples of powers of two: a double prints many of these with all their digits.
const id64 = fc.oneof(
  fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 0n, max: 1_000n }).map((n) => 2n ** 53n - 500n + n),
  fc.bigInt({ min: 1n, max: 2n ** 41n - 1n }).map((n) => n * 2n ** 22n),
  fc.bigInt({ min: 1n, max: 9_223_372n }).map((n) => n * 10n ** 12n),
  fc.bigInt({ min: 2n ** 63n - 3_000n, max: 2n ** 63n - 1n }),
);

describe('for every positive integer of 63 bits', () => {
  test('it is an id, an advertiser, an echo and a jobseeker, exactly', () => {
    fc.assert(
      fc.property(id64, fc.boolean(), (id, asText) => {
        const written = asText ? `"${id}"` : `${id}`;
        const element = `{"ID":${written},"JobSeekerID":${written}}`;
        const pages = [
          `{"AdvertiserID":${written},"AfterID":${written},"JobApplicationsList":[${element}]}`,
          `<JobApplications><AdvertiserID>${id}</AdvertiserID><AfterID>${id}</AfterID><JobApplicationsList><JobApplication>` +
            `<ID>${id}</ID><JobSeekerID>${id}</JobSeekerID></JobApplication></JobApplicationsList></JobApplications>`,
        ].map((body) => parsePage(body));
        for (const page of pages) {
          expect(page).toMatchObject({ advertiserId: id, ids: [id], rejects: [], echo: { afterId: id } });
          expect(page.applications[0]).toMatchObject({ id, jobSeekerId: String(id), notes: [] });
          expect(page.applications[0]?.raw).toMatch(new RegExp(`"ID":"?${id}"?,`));
        }
        expect(pages[1]?.applications[0]?.contentHash).toBe(pages[0]?.applications[0]?.contentHash);
        expect(parseElement(element)).toMatchObject({ id });
      }),
      { numRuns: drawsOf(400) },
    );
  });

  test('it is found in the beginning of a list that is too large to read', () => {
    fc.assert(
      fc.property(id64, (id) => {
        expect(scanIds(`[{"ID":${id},"Em`)).toEqual([id]);
        expect(scanIds(`[{"ID" : "${id}" ,"Em`)).toEqual([id]);
        expect(scanIds(`<a:ID>${id}</a:ID><a:Em`)).toEqual([id]);
      }),
    );
  });

  test('a number of 19 digits beyond 64 bits is no point to split a list at', () => {
    expect(scanIds('[{"ID":9223372036854775808},{"ID":-9223372036854775809},{"ID":7},')).toEqual([7n]);
  });
});

describe('a body made to break its reader', () => {
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const around = (members: string) =>
    `{"JobApplications":{"JobApplicationsList":[{"ID":1},{"ID":2,${members}},{"ID":3}]}}`;

  test.for([1_001, 4_000, 200_000])(
    'nested %i deep inside an element costs only jsonb, and is kept whole',
    (levels) => {
      const page = parsePage(around(`"Email":"a@example.com","Deep":${deep(levels)}`));
      expect(page.ids).toEqual([1n, 2n, 3n]);
      const bomb = page.applications[1];
      expect(bomb).toMatchObject({ email: 'a@example.com', raw: '{"ID":2,"Email":"a@example.com","Deep":[]}' });
      expect(bomb?.notes).toEqual([{ field: 'raw', reason: 'nests too deeply for jsonb' }]);
      expect(bomb?.rawText).toBe(`{"ID":2,"Email":"a@example.com","Deep":${deep(levels)}}`);
    },
  );

  test('nested 900 deep is within what jsonb takes', () => {
    expect(parsePage(around(`"Deep":${deep(900)}`)).applications[1]).toMatchObject({ rawText: null, notes: [] });
  });

  test.for([
    [
      'nested 200,000 deep beside a number that needs exact reading',
      around(`"Deep":${deep(200_000)},"n":12345678901234567890`),
    ],
    ['nothing but brackets', deep(200_000)],
    ['brackets that never close', '['.repeat(200_000)],
    ['wrappers in wrappers', `${'{"JobApplications":'.repeat(100_000)}null${'}'.repeat(100_000)}`],
    ['elements in elements', `${'<JobApplications>'.repeat(200_000)}${'</JobApplications>'.repeat(200_000)}`],
    ['elements that never close', '<JobApplications>'.repeat(200_000)],
  ])('%s ends in seconds, refused or noted', ([, body]) => {
    // Of this process's own time, whatever else the machine does.
    const before = process.cpuUsage();
    try {
      const page = parsePage(body as string);
      expect(page.rejects.length + page.applications.flatMap(({ notes }) => notes).length).toBeGreaterThan(0);
    } catch (error) {
      expect(error).toBeInstanceOf(Trouble);
      expect(error).toMatchObject({ kind: 'malformed' });
    }
    expect(process.cpuUsage(before).user).toBeLessThan(10_000_000);
  });

  test('no refusal quotes the body', () => {
    for (const body of [
      '{"Email":"secret-value',
      '[{"ID":1,"Email":secret-value}]',
      '<a>secret-value</b>',
      '<secret-value>',
    ]) {
      try {
        parsePage(body);
        expect.unreachable();
      } catch (error) {
        expect(String((error as Error).stack)).not.toContain('secret-value');
        expect((error as Error).cause).toBeUndefined();
      }
    }
  });
});
