// Whole pages and screens of any shape around the spec's, in JSON and XML, from bytes to rows: each is refused whole with a Trouble, or
// stored whole; nothing else is thrown, and nothing is stored by half.
import { createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { Trouble } from '../../../src/domain/trouble.ts';
import { parsePage } from '../../../src/source/parse/list.ts';
import { parseScreens } from '../../../src/source/parse/screen.ts';
import { replaceScreens } from '../../../src/store/files/complete-download.ts';
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts';
import { anApplication, aPage, commitPage } from '../../support/applications.ts';
import { emptyDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { claimLease } from '../../support/leases.ts';

const runs = Number(process.env.HOSTILE_RUNS ?? 60);

/** Text that stores, parsers and terminals dislike. */
const nasty = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '\u0000',
    'a\ud800b',
    '\ufeff',
    '1e400',
    "'; DROP TABLE x; --",
    '__proto__',
    '\u202e',
    ']]>',
    '&#0;',
    'NaN',
  ),
);
const id = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 500 }) },
  fc.constantFrom<unknown>(0, -1, 1.5, '12', '1e3', '9223372036854775807', '9223372036854775808', null, true, [], {}),
);
const value = fc.oneof(
  { weight: 3, arbitrary: nasty },
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>('/Date(1700000000000+1100)/', '/Date(-62135596800000)/', '/Date(9e99)/', 'True', -1, null),
);
const names = [
  'FirstName',
  'Email',
  'Phone',
  'DateSubmitted',
  'JobSeekerID',
  'JobReference',
  '__proto__',
  'Extra\u0000',
] as const;
const attachment = fc.dictionary(fc.constantFrom('Type', 'Size', 'Hash', 'HasVirus', 'Href', 'DateUploaded'), value);
const application = fc
  .tuple(
    id,
    fc.dictionary(fc.constantFrom(...names), value),
    fc.oneof(fc.array(attachment, { maxLength: 3 }), value),
    value,
  )
  .map(([ID, members, Attachments, PrimaryJobSeekingInfo]) => ({ ID, ...members, Attachments, PrimaryJobSeekingInfo }));
const list = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.oneof({ weight: 6, arbitrary: application }, value), { maxLength: 6 }) },
  value,
);
const page = fc.oneof(
  {
    weight: 8,
    arbitrary: list.map((JobApplicationsList) => ({ JobApplications: { AdvertiserID: 7, JobApplicationsList } })),
  },
  value,
);
const json = page.map((drawn) => JSON.stringify(drawn));
const xml = page.map(
  (drawn) =>
    `<?xml version="1.0"?>${toXml('JobApplications', (drawn as { JobApplications?: unknown } | null)?.JobApplications ?? drawn)}`,
);
/** Half of them are spoiled somewhere. */
const body = fc
  .tuple(fc.oneof(json, xml), fc.option(fc.tuple(fc.nat(), nasty), { freq: 2 }))
  .map(([text, spoil]) =>
    spoil === null
      ? text
      : `${text.slice(0, spoil[0] % (text.length + 1))}${spoil[1]}${text.slice(spoil[0] % (text.length + 1))}`,
  );

const answer = fc.record({ '@id': value, '@selected': value, '#text': value }, { requiredKeys: [] });
const question = fc.record({
  '@id': value,
  '@type': value,
  '@text': value,
  answer: fc.oneof(answer, fc.array(answer), value),
});
const screen = fc.record({
  '@id': value,
  '@name': value,
  '@successful': value,
  question: fc.oneof(question, fc.array(question), value),
});
const screenBody = fc.oneof(
  fc.oneof(screen, fc.array(screen), value).map((drawn) => JSON.stringify({ screen: drawn })),
  screen.map((drawn) => toXml('screen', drawn)),
  nasty,
);

describe('whatever comes', () => {
  test('a page is refused whole or stored whole', async ({ database }) => {
    await using db = openDatabase({ url: database.url, role: 'test' });
    let stored = 0;
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        stored += await keep(database, db, text);
      }),
      { numRuns: runs },
    );
    // Generators that only make refusals would prove nothing.
    expect(stored).toBeGreaterThan(runs / 4);
  });

  test('a screen is refused whole or stored whole', async ({ database }) => {
    await using db = openDatabase({ url: database.url, role: 'test' });
    const lease = await claimLease(db, { name: 'beta', lane: 'live', owner: 'test', leaseMs: 600_000 });
    if (!lease) throw new Error('The lane was not free.');
    await commitPage(db, createSecretKey(Buffer.from('key')), aPage(lease, [anApplication(1)], { advertiserId: 8n }));
    await fc.assert(
      fc.asyncProperty(screenBody, async (text) => {
        const parsed = orTrouble(() => parseScreens(Buffer.from(text), undefined));
        if (parsed === null) return;
        await db.transaction((tx) => replaceScreens(tx, 8n, [{ applicationId: 1n, sha256: 'a'.repeat(64), parsed }]));
        const [row] = await db.query<{ n: bigint }>(`SELECT count(*) AS n FROM intake.screens WHERE advertiser_id = 8`);
        expect(Number(row?.n)).toBe(parsed.screens.length);
      }),
      { numRuns: runs },
    );
  });
});

/** Parses and commits; answers how many applications were stored, after checking that it was all of them. */
async function keep(database: TestDatabase, db: Database, text: string): Promise<number> {
  const parsed = orTrouble(() => parsePage(text));
  if (parsed === null) return 0;
  await emptyDatabase(database);
  const lease = await claimLease(db, { name: 'acme', lane: 'live', owner: 'test', leaseMs: 600_000 });
  if (!lease) throw new Error('The lane was not free.');
  const { applications, rejects, shared } = parsed;
  await commitPage(db, createSecretKey(Buffer.from('key')), aPage(lease, applications, { rejects, shared }));
  const [row] = await db.query<{ applications: bigint; events: bigint; quarantined: bigint }>(
    `SELECT (SELECT count(*) FROM intake.applications) AS applications, (SELECT count(*) FROM intake.quarantine) AS quarantined,
       (SELECT count(*) FROM intake.events WHERE type = 'application.received') AS events`,
  );
  expect(Number(row?.applications)).toBe(applications.length);
  expect(Number(row?.events)).toBe(applications.length);
  if (rejects.length + shared.length > 0) expect(Number(row?.quarantined)).toBeGreaterThan(0);
  return applications.length;
}

function orTrouble<T>(parse: () => T): T | null {
  try {
    return parse();
  } catch (error) {
    expect(error).toBeInstanceOf(Trouble);
    return null;
  }
}

/** Any value as XML, as a careless writer would make it: nothing is escaped that need not be to stay one element. */
function toXml(name: string, drawn: unknown): string {
  const tag = /^[A-Za-z_][\w]*$/.test(name) ? name : 'Other';
  if (drawn === null || typeof drawn !== 'object') {
    return `<${tag}>${String(drawn ?? '')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')}</${tag}>`;
  }
  const single = tag === 'JobApplicationsList' ? 'JobApplication' : tag === 'Attachments' ? 'Attachment' : tag;
  if (Array.isArray(drawn)) return `<${tag}>${drawn.map((one) => toXml(single, one)).join('')}</${tag}>`;
  const attributes = Object.entries(drawn)
    .filter(([key]) => /^@\w+$/.test(key))
    .map(([key, one]) => ` ${key.slice(1)}="${toAttributeText(one).replace(/[&<"]/g, '')}"`);
  const children = Object.entries(drawn).filter(([key]) => !key.startsWith('@'));
  return `<${tag}${attributes.join('')}>${children.map(([key, one]) => (key === '#text' ? toXml('b', one) : toXml(key, one))).join('')}</${tag}>`;
}

/** An object may have a member named toString, which String() would call. */
function toAttributeText(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'object' : String(value);
}
