import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commands } from '../../../src/cli/commands.ts';
import { anonymousViews, personalViews } from '../../../src/store/postgres/grants.ts';

const root = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const folder = (path: string) => readdirSync(join(root, path)).filter((name) => name.endsWith('.md'));
const pages = ['README.md', 'bench/results.md', ...folder('docs').map((name) => `docs/${name}`)].filter((path) =>
  existsSync(join(root, path)),
);
const readme = read('README.md');
const names = commands.map(({ name }) => name);
const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Record<string, string> };
const words =
  'none one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three twenty-four twenty-five'.split(
    ' ',
  );

/** The anchors of a page, as GitHub makes them from its headings. */
function toAnchors(text: string): string[] {
  return Array.from(text.matchAll(/^#{1,6} (.+)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** The test files that a cell links to. */
const toTests = (cell: string) => Array.from(cell.matchAll(/\(\.\.\/(test\/[^)]+)\)/g), ([, file = '']) => file);

describe('the pages', () => {
  test.each(pages)('%s: every link leads somewhere', (path) => {
    const text = read(path).replaceAll(/^```.*?^```/gms, '');
    const links = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link);
    const dead = links.filter((link) => {
      if (/^(https?:|mailto:)/.test(link)) return false;
      const [target = '', anchor] = link.split('#');
      const file = target === '' ? path : join(dirname(path), target);
      if (!existsSync(join(root, file))) return true;
      return anchor !== undefined && !toAnchors(read(file)).includes(anchor);
    });
    expect(dead).toEqual([]);
  });

  test.each(pages)('%s: every file and script that it names exists', (path) => {
    const text = read(path);
    const files = Array.from(
      text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|sql|yaml|json|md))`/g),
      ([, file = '']) => file,
    );
    const missing = files.filter((file) => !['', 'src/', 'docs/'].some((room) => existsSync(join(root, room, file))));
    const run = Array.from(text.matchAll(/npm run ([\w:]+)/g), ([, name = '']) => name);
    expect([...missing, ...run.filter((name) => !(name in scripts))]).toEqual([]);
  });

  test.each(pages)('%s: every command that it names exists', (path) => {
    const named = Array.from(
      read(path).matchAll(/(?:`|^|-- |\$ )intake ([a-z]+(?:-[a-z]+)*)/gm),
      ([, name = '']) => name,
    );
    expect(named.filter((name) => !names.includes(name))).toEqual([]);
  });
});

test('docs/source-api.md has a row for every silence of the API, with what Intake does', () => {
  const silences = read('docs/source-api.md').split('## What is not said')[1] ?? '';
  const numbers = Array.from(silences.matchAll(/^\| (\d+) \|/gm), ([, number]) => Number(number));
  const rows = Array.from(silences.matchAll(/^\| (\d+) \|[^|]*\w[^|]*\|[^|]*\w[^|]*\|$/gm), ([, number]) =>
    Number(number),
  );
  expect(rows).toEqual(numbers);
});

describe('docs/architecture.md', () => {
  const rows = Array.from(
    read('docs/architecture.md').matchAll(/^\| (P\d+) \| [^|]+ \| ([^|]*) \| ([^|]*)\|$/gm),
    ([, promise = '', quick = '', slow = '']) => ({ promise, quick: toTests(quick), slow: toTests(slow) }),
  );
  const isLeftOut = (file: string) => /^\/\/ @module-tag\b/.test(read(file));

  test('has a row for every promise', () => {
    const numbers = Array.from({ length: 31 }, (_, nth) => `P${nth + 1}`);
    expect(rows.map(({ promise }) => promise)).toEqual(numbers);
  });

  test.each(rows)(
    '$promise: npm test has a test of it, and test:all those that are named for it',
    ({ quick, slow }) => {
      expect(quick).not.toEqual([]);
      expect([...quick, ...slow].filter((file) => !existsSync(join(root, file)))).toEqual([]);
      expect(quick.filter(isLeftOut)).toEqual([]);
      expect(slow.filter((file) => !/@module-tag\b|'slow'|drawsOf/.test(read(file)))).toEqual([]);
    },
  );
});

describe('the README', () => {
  test.each(names)('names intake %s', (name) => {
    expect(readme, `README.md, the table under "Operate": add a row for intake ${name}`).toMatch(
      new RegExp(`intake ${name}\\b|intake -- ${name}\\b|run ${name}\\b`),
    );
  });

  test('counts the views, those that name nobody, and the alerts as they are', () => {
    const alerts = read('deploy/prometheus-rules.yaml').match(/- alert: /g) ?? [];
    for (const [section, count] of [
      ['What you get', `${words[anonymousViews.length + personalViews.length]} views for analysts`],
      ['What you get', `${words[anonymousViews.length]} of them name nobody`],
      ['Operate', `\`deploy/prometheus-rules.yaml\` has ${words[alerts.length]}`],
    ]) {
      expect(readme, `README.md, "${section}", counts: write "${count}"`).toContain(count);
    }
  });

  test('is short enough to be read', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(160);
  });
});
