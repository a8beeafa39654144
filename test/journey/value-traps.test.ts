// What may stand in a member, row by row, from HTTP to the stored row: values and dates that no description foresees. An application with
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
  { what: 'a boolean "True"', raw: {}, file: { HasVirus: '"True"' }, stored: { has_virus: true } },
  { what: 'a boolean 1', raw: {}, file: { HasVirus: '1' }, stored: { has_virus: true }, jsonOnly: true },
  {
    what: 'a boolean ""',
    raw: {},
    file: { HasVirus: '""' },
    stored: { has_virus: null },
    noted: 'Attachments.HasVirus',
    jsonOnly: true,
  },
  { what: 'Size as text', raw: {}, file: { Size: '"12"' }, stored: { size_bytes: '12' } },
  { what: 'Size null', raw: {}, file: { Size: 'null' }, stored: { size_bytes: null }, jsonOnly: true },
  { what: 'Size -1', raw: {}, file: { Size: '-1' }, stored: { size_bytes: null }, noted: 'Attachments.Size' },
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
    what: 'a constructor key',
    raw: { constructor: '{"prototype":{"Email":"p@example.com"}}' },
    stored: { email: 'own@example.com' },
  },
  {
    what: 'control characters',
    raw: { FirstName: '"a\\u0001\\u001fb"' },
    stored: { first_name: 'a\u0001\u001fb' },
    jsonOnly: true,
  },
  { what: "O'Brien", raw: { LastName: `"O'Brien"` }, stored: { last_name: "O'Brien" } },
  { what: 'emoji', raw: { FirstName: quoted('👩‍🚀') }, stored: { first_name: '👩‍🚀' } },
  { what: 'right-to-left marks', raw: { FirstName: quoted('\u202eadA') }, stored: { first_name: '\u202eadA' } },
  {
    what: '10,000 characters',
    raw: { FirstName: quoted('x'.repeat(10_000)) },
    stored: { first_name: 'x'.repeat(10_000) },
  },
  {
    what: '<img onerror>',
    raw: { FirstName: quoted('<img onerror=alert(1)>') },
    stored: { first_name: '<img onerror=alert(1)>' },
  },
  { what: 'a leading =', raw: { LastName: '"=1+1"' }, stored: { last_name: '=1+1' } },
  { what: 'a phone with its zero', raw: { Phone: '"0412345678"' }, stored: { phone: '0412345678' } },
  { what: 'a phone with its plus', raw: { Phone: '"+61412345678"' }, stored: { phone: '+61412345678' } },
  { what: 'JobReference absent', raw: { JobReference: 'null' }, stored: { job_reference: null }, jsonOnly: true },
  {
    what: 'JobReference that drops a table',
    raw: { JobReference: quoted("'; DROP TABLE intake.applications; --") },
    stored: { job_reference: "'; DROP TABLE intake.applications; --" },
  },
  { what: 'an e-mail missing', raw: { Email: 'null' }, stored: { email: null }, jsonOnly: true },
  { what: 'an e-mail malformed', raw: { Email: '"not an address"' }, stored: { email: 'not an address' } },
  { what: 'an e-mail shared', raw: { Email: '"not an address"' }, stored: { email: 'not an address' } },
  {
    what: 'an object for a text',
    raw: { FirstName: '{"a": 1}' },
    stored: { first_name: null },
    noted: 'FirstName',
    jsonOnly: true,
  },
  { what: '/Date(ms)/ without offset', raw: date(`/Date(${noon})/`), stored: { ...at(noon), source_offset: null } },
  { what: '+0000', raw: date(`/Date(${noon}+0000)/`), stored: { ...at(noon), source_offset: '+00:00' } },
  { what: '-0330', raw: date(`/Date(${noon}-0330)/`), stored: { ...at(noon), source_offset: '-03:30' } },
  { what: '+1100', raw: date(`/Date(${noon}+1100)/`), stored: { ...at(noon), source_offset: '+11:00' } },
  { what: '+11:00', raw: date(`/Date(${noon}+11:00)/`), stored: { ...at(noon), source_offset: '+11:00' } },
  {
    what: '+9900',
    raw: date(`/Date(${noon}+9900)/`),
    stored: { ...at(noon), source_offset: null },
    noted: 'DateSubmitted',
  },
  { what: 'negative ms', raw: date('/Date(-86400000+1000)/'), stored: at(-86_400_000) },
  { what: 'escaped slashes', raw: { DateSubmitted: `"\\/Date(${noon}+1000)\\/"` }, stored: at(noon) },
  { what: 'ISO with zone', raw: date('2024-01-15T23:00:00+11:00'), stored: { ...at(noon), source_offset: '+11:00' } },
  { what: 'ISO without zone', raw: date('2024-01-15T22:00:00'), stored: at(noon), noted: 'DateSubmitted' },
  { what: 'ISO with 7 fraction digits', raw: date('2024-01-15T12:00:00.1239999Z'), stored: at(noon + 123) },
  { what: 'year 1', raw: date('0001-01-01T00:00:00'), stored: at(null), noted: 'DateSubmitted' },
  { what: 'a date null', raw: { DateSubmitted: 'null' }, stored: at(null), jsonOnly: true },
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
    ['json', 'utf8WithMark', 'slow'],
    ['xml', 'utf8', 'slow'],
    ['xml', 'mislabelled', 'slow'],
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
