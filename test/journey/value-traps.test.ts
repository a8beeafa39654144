// Values and dates that no description foresees, from HTTP to the stored row, as far as Postgres has a say; all others stand in the unit tests of
// values and dates. An application with
// a usable id is stored, and what could not be kept as it came is noted; one without goes to quarantine; neither costs its page anything.
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { syncBoard } from '../support/syncing.ts';
import { test } from '../support/test-database.ts';

const noon = Date.UTC(2024, 0, 15, 12);
const at = (time: number | null) => ({ submitted_at: time === null ? null : new Date(time) });
const date = (text: string) => ({ DateSubmitted: JSON.stringify(text) });
const quoted = (text: string) => JSON.stringify(text);

interface Row {
  readonly what: string;
  /** Members as JSON text; in XML the same values. */
  readonly raw: Readonly<Record<string, string>>;
  /** Members of its only file. */
  readonly file?: Readonly<Record<string, string>>;
  /** The element whole. */
  readonly element?: string;
  readonly stored: Readonly<Record<string, unknown>>;
  /** The member that `notes` must name; null: no note. */
  readonly noted?: string | null;
  /** Cannot be written in XML, or means something else there. */
  readonly jsonOnly?: boolean;
}

const rows: readonly Row[] = [
  { what: 'an id as a string', raw: { ID: '"00000001001"' }, stored: { application_id: '1001' } },
  { what: 'an id above 2^53', raw: { ID: '9007199254740993' }, stored: { application_id: '9007199254740993' } },
  {
    what: 'NUL',
    raw: { FirstName: '"a\\u0000b"' },
    stored: { first_name: 'a\ufffdb' },
    noted: 'FirstName',
    jsonOnly: true,
  },
  {
    what: 'a lone surrogate',
    raw: { LastName: '"a\\ud800b"' },
    stored: { last_name: 'a\ufffdb' },
    noted: 'LastName',
    jsonOnly: true,
  },
  {
    what: 'a __proto__ key',
    raw: {},
    element: '{"ID": 78, "Email": "own@example.com", "__proto__": {"Email": "p@example.com"}}',
    stored: { application_id: '78', email: 'own@example.com' },
    jsonOnly: true,
  },
  {
    what: 'control characters',
    raw: { FirstName: '"a\\u0001\\u001fb"' },
    stored: { first_name: 'a\u0001\u001fb' },
    jsonOnly: true,
  },
  { what: 'emoji', raw: { FirstName: quoted('👩‍🚀') }, stored: { first_name: '👩‍🚀' } },
  {
    what: '10,000 characters',
    raw: { FirstName: quoted('x'.repeat(10_000)) },
    stored: { first_name: 'x'.repeat(10_000) },
  },
  {
    what: 'JobReference that drops a table',
    raw: { JobReference: quoted("'; DROP TABLE intake.applications; --") },
    stored: { job_reference: "'; DROP TABLE intake.applications; --" },
  },
  { what: '+1100', raw: date(`/Date(${noon}+1100)/`), stored: { ...at(noon), source_offset: '+11:00' } },
  { what: 'negative ms', raw: date('/Date(-86400000+1000)/'), stored: at(-86_400_000) },
  { what: 'ISO without zone', raw: date('2024-01-15T22:00:00'), stored: at(noon), noted: 'DateSubmitted' },
  { what: 'year 1', raw: date('0001-01-01T00:00:00'), stored: at(null), noted: 'DateSubmitted' },
  { what: 'a date in the future', raw: date('/Date(4102444800000+1000)/'), stored: at(4_102_444_800_000) },
];

/** Elements without a usable id, whole. */
const rejects = [
  '{"ID": "1e3"}',
  '{"ID": 1.5}',
  '{"Email": "no id"}',
  '{"ID": 9223372036854775808}',
  '{"ID": 0}',
  '{"ID": -5}',
  '7',
];

describe('every value is stored as it came, or noted', () => {
  for (const [format, charset, ...tags] of [
    ['json', 'utf8'],
    ['json', 'utf16', 'slow'],
    ['xml', 'utf8', 'slow'],
  ] as const)
    test(`by ${format} in ${charset}`, { tags }, async ({ emptied: database }) => {
      await using board = await openSandbox({ applications: 0, choices: { charset } });
      const played = rows.filter((row) => format === 'json' || !row.jsonOnly);
      const ids = board.add(
        played.map(({ raw, file, element }) => ({
          email: 'own@example.com',
          attachments: file ? [{ kind: 'portfolio', raw: file }] : [],
          ...(element ? { element: { json: element, xml: '' } } : { raw }),
        })),
      );
      board.add(rejects.map((json) => ({ element: { json, xml: `<Email>${json.length}</Email>` } })));
      await syncBoard(database, board, { env: { SOURCE_FORMAT: format } });
      const stored = new Map(
        (
          await database.query(
            `SELECT a.*, f.size_bytes, f.has_virus FROM intake.applications a LEFT JOIN intake.attachments f USING (advertiser_id, application_id)`,
          )
        ).map((row) => [String(row.application_id), row]),
      );
      for (const [nth, { what, stored: wanted, noted = null }] of played.entries()) {
        const row = stored.get(String(wanted.application_id ?? ids[nth]));
        expect(row, what).toMatchObject(wanted);
        const fields = (row?.notes as { field: string }[] | null)?.map(({ field }) => field) ?? [];
        if (noted === null) expect(fields, what).toEqual([]);
        else expect(fields, what).toContain(noted);
      }
      expect(stored.size).toBe(played.length);
      expect(
        await database.query(`SELECT count(*)::int AS n, sum(seen)::int AS seen FROM intake.quarantine`),
      ).toMatchObject([{ n: format === 'json' ? rejects.length : expect.any(Number) }]);
    });
});
