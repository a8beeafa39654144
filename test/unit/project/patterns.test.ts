// Every regular expression that runs on text from outside takes linear time, whatever the text.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findSlowPattern } from '../../support/documents/regex-checker.ts';

/** Files with slow expressions, and why no stranger reaches these with a long text. */
const harmless = {
  'src/domain/safe-error.ts': 'messages are cut to 2,000 characters first',
  'src/config/parsers.ts': 'settings of the operator',
  'src/blobs/s3.ts': 'a setting of the operator',
  'src/store/postgres/database.ts': 'messages of the database server',
};

test('every regular expression of src is linear, and none is built at run time', () => {
  const lister = join(import.meta.dirname, '../../support/documents/list-patterns.ts');
  const options = { cwd: join(import.meta.dirname, '../../..'), encoding: 'utf8' } as const;
  const { literals, built } = JSON.parse(execFileSync(process.execPath, ['--no-warnings', lister], options)) as {
    literals: { file: string; pattern: string; flags: string }[];
    built: string[];
  };
  expect(literals.length).toBeGreaterThan(150);
  expect(built).toEqual([]);
  const slow = literals.flatMap(({ file, pattern, flags }) => {
    const problem = findSlowPattern(pattern, flags);
    return problem === null ? [] : [{ file, problem: `/${pattern}/${flags} ${problem}` }];
  });
  expect(slow.filter(({ file }) => !(file in harmless))).toEqual([]);
  expect(new Set(slow.map(({ file }) => file))).toEqual(new Set(Object.keys(harmless)));
});

test.for([
  ['(a+)+b', '', 'repeats'],
  ['^(?:a|a)*$', '', 'two'],
  ['^\\s*(?:<!--[\\s\\S]*?-->\\s*)*<(?:!doctype\\s+html|html|head|body)\\b', 'i', 'two'],
  ['^(?:a|ab|b)*$', '', 'two'],
  ['\\s+$', '', 'search'],
  ['<([^<>]*@[^<>]*)>\\s*$', '', 'two'],
  ['^a*a*$', '', 'two'],
  ['^\\S+@\\S+$', '', 'two'],
  ['[^\\s@]+@', '', 'search'],
  ['x[\\w-]{1,100}$', '', 'search'],
  ['^(.*)\\1$', '', 'reference'],
  ['(?=a*b)c', '', 'lookaround'],
] as const)('the checker knows that /%s/%s is slow', ([source, flags, problem]) => {
  expect(findSlowPattern(source, flags)).toContain(problem);
});

test.for([
  ['\\s+', 'g'],
  ['^\\s*(?:a|b)+$', ''],
  ['^[a-z]+(?:-[a-z]+)*$', ''],
  ['"[^"]*"', 'g'],
  ['^a[ab]*a$', ''],
  ['^\\d{1,19}$', ''],
  ['(?!0)[\\p{L}\\p{N}]', 'u'],
  ['charset\\s*=\\s*"?([\\w.:-]+)', 'i'],
] as const)('the checker knows that /%s/%s is linear', ([source, flags]) => {
  expect(findSlowPattern(source, flags)).toBeNull();
});
