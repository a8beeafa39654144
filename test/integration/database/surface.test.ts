// What users build on. Within a major version nothing of it vanishes or changes its type, and what is added stands in the changelog.
// At a release, `SURFACE=write npm test -- test/integration/database/surface.test.ts` writes test/support/documents/surface.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openTestDatabase, test } from '../../support/database/test-database.ts';
import { compareSurfaces, loadSurface, namedTables, type Surface } from '../../support/documents/surface.ts';

const file = 'test/support/documents/surface.json';
const { version, surface: released } = JSON.parse(readFileSync(file, 'utf8')) as { version: string; surface: Surface };
const { version: current } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const changelog = readFileSync('CHANGELOG.md', 'utf8');
/** What was written since that release; of a release that is being made, its own section. */
const [news = ''] = changelog.split(`\n## [${version}]`);

describe('the surface', () => {
  test('keeps what the last release had, and says what it adds', async ({ database }) => {
    const surface = await loadSurface(database);
    if (process.env.SURFACE === 'write') {
      writeFileSync(file, `${JSON.stringify({ version: current, surface }, null, 2)}\n`);
      return;
    }
    // A new major version may drop things; its own list then takes the place of this one.
    expect(current.split('.')[0]).toBe(version.split('.')[0]);
    expect(compareSurfaces(released, surface, news)).toEqual([]);
  });

  test('goes red when a column of a view or of a named table has another name or type', async () => {
    await using changed = await openTestDatabase();
    const before = await loadSurface(changed);
    await changed.query(`ALTER VIEW intake_analytics.jobs RENAME COLUMN job_reference TO reference;
      ALTER TABLE intake.quarantine RENAME COLUMN seen TO times;
      ALTER TABLE intake.prefills ALTER COLUMN profile TYPE text`);
    expect(compareSurfaces(before, await loadSurface(changed), 'It now has `reference`.')).toEqual([
      'changed: table prefills .profile was jsonb and is text',
      'vanished: table quarantine .seen',
      'vanished: view jobs .job_reference',
    ]);
  });

  test('takes an addition that the changelog names, by its own name or with the new thing it belongs to', () => {
    const before = { 'setting LEASE': 'default 30s', 'json status .at': 'string' };
    const now = { ...before, 'json status .since': 'string', 'command extract': '', 'command extract --to': 'value' };
    expect(compareSurfaces(before, now, '')).toHaveLength(3);
    expect(compareSurfaces(before, now, '`extract` is new, and `since`.')).toEqual([]);
  });

  test('goes red when an exit code, a setting, a metric, an event or a member of JSON vanishes or changes', () => {
    const names = Object.keys(released);
    const kinds = [...new Set(names.map((name) => name.split(' ')[0]))];
    expect(kinds.join(' ')).toBe('command event exit json key metric proof setting table view');
    for (const kind of kinds) {
      const [name = ''] = names.filter((one) => one.startsWith(`${kind} `) && released[one] !== 'null');
      const { [name]: type, ...without } = released;
      expect(compareSurfaces(released, without, '')).toEqual([`vanished: ${name}`]);
      const other = { ...released, [name]: 'other' };
      expect(compareSurfaces(released, other, '')).toEqual([`changed: ${name} was ${type} and is other`]);
    }
  });

  test('is what the page on compatibility names', () => {
    const page = readFileSync('docs/compatibility.md', 'utf8');
    expect(namedTables.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
