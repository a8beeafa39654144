// Words that this project has retired, with the words that took their place. They must not come back: a reader who knows Postgres, queues
// and HTTP should not have to learn a dialect.
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const retired: readonly (readonly [instead: string, word: RegExp])[] = [
  ['record, row, commit', /\bbook(?:s|ed|ing)?\b/i],
  ['account queue', /\bdesks?\b/i],
  ['task', /\bdut(?:y|ies)\b|\bchores?\b/i],
  ['in flight, commit the answer', /(?<!\bin )(?<!in-)\bflights?\b|\blandings?\b|\blanded\b/i],
  ['download run, download loop', /(?<!')\bdrain(?:s|ed|ing)?\b/i],
  ['download run, download loop', /\bdrain[A-Z]|[a-z]Drain|\bDrain[A-Z]/],
  ['retry', /\bpatien(?:ce|tly)\b|[a-z]Patien/i],
  ['watchdog, heartbeat', /\bpulse\b/i],
  ['account identity check', /\brecognis\w*/i],
  ['health checks', /examin/i],
  ['disk', /\bplatter\b/i],
  ['infected', /\bcondemn\w*|\bdoomed\b/i],
  ['rate limit', /\bpaces?\b/i],
  ['the worker, the process, the caller: name the subject', /\bwhoever\b/i],
  // The next words are ordinary English as well: a round trip, reading a file, one after the other in turn, `Promise.allSettled`. What is
  // refused is the noun, and the name in code.
  [
    'sync, sweep, download run',
    /\b(?:a|one|the|this|each|every|first|second|next|last|live|complete) round\b(?! trips?\b)|\brounds\b/i,
  ],
  ['sync, sweep, download run', /\b(?:let|const) round\b|[a-z]Round(?!ed)|\bRound[A-Z]/],
  [
    'sweep, poll, parsed value',
    /\breadings\b|\b(?:a|an|one|this|each|every|first|second|next|last|earlier|proven|unfinished) reading\b/i,
  ],
  [
    'sweep, poll, parsed value',
    /\b(?:let|const|readonly|using) reading\b|[a-z]Readings?\b|\breading[A-Z]|\bReading[A-Z]|\b(?:interface|type) Reading\b/,
  ],
  ['completion, end', /\bendings\b|\b(?:an|the|its) ending\b|\b(?:let|const) ending\b|[a-z]Endings?\b|\bEnding[A-Z]/],
  ['complete', /\bsettl(?:e|es|ed|ing)\b|[a-z](?<!\ball)(?<!\bPromise)Settle/],
  [
    'slot, tick, run',
    /\bin turns\b|\btakes? turns\b|\b(?:its|their|next|one|each|every|this|a) turn\b|\b(?:let|const) turns?\b|[a-z]Turns?\b|\bTurn[A-Z]/,
  ],
];

/** Invented people may say what they like, and this file names the words. */
const exempt = /^src\/dev\/sandbox\/(?:people\/|account\/candidates)|^test\/unit\/project\/words\.test\.ts$/;
const files = globSync('{src,test,docs,deploy,bench,examples,migrations}/**/*.{ts,md,yaml,json,css,sql}')
  .concat('README.md', '.env.example', 'compose.yaml', 'Dockerfile')
  .filter((file) => !exempt.test(file) && !file.includes('node_modules') && !file.endsWith('package-lock.json'));

test.each(retired)('is written in place of a retired word: %s', (_, word) => {
  const found = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, at) => (word.test(line) ? [`${file}:${at + 1}: ${word.exec(line)?.[0]}`] : [])),
  );
  expect(files.length).toBeGreaterThan(300);
  expect(found).toEqual([]);
});
