// @module-tag slow
// What programs read: the JSON of every command against the page that describes it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { commands } from '../../../src/cli/commands.ts';
import { runCli } from '../../../src/cli/run.ts';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { test } from '../../support/database/test-database.ts';
import { toMembers } from '../../support/documents/json-members.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openReceiver, webhookSecret } from '../../support/servers/receiver.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

const page = readFileSync(new URL('../../../docs/cli-json.md', import.meta.url), 'utf8');
const examples = Array.from(page.matchAll(/^```json (.+)\n([\s\S]+?)^```/gm), ([, line = '', text = '']) => ({
  line,
  example: JSON.parse(text) as object,
}));

function findDifferences(told: object, described: object): string[] {
  const [real, written] = [toMembers(told), toMembers(described)];
  const isUnder = (path: string, other: Map<string, string>) =>
    [...other].some(([parent, type]) => type === 'null' && path.startsWith(parent));
  // Which states attachments are in depends on the data.
  const paths = [...new Set([...real.keys(), ...written.keys()])].filter((path) => !path.includes('.attachments.'));
  return paths.flatMap((path) => {
    const [one, other] = [real.get(path), written.get(path)];
    if (one === other || one === 'null' || other === 'null') return [];
    if (isUnder(path, one === undefined ? real : written)) return [];
    return [`${path}: told ${one}, described ${other}`];
  });
}

describe('with --json', () => {
  test('every command tells what its page says', async ({ database }) => {
    await using board = await openSandbox({ applications: 24 });
    await using scratch = await openScratch();
    await using receiver = await openReceiver();
    const env = {
      ...toEnvironment(database, board, join(scratch.path, 'blobs')),
      ...{ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW_PRIVATE: 'true' },
    };
    const id = [...board.truth()].find((one) => one.attachments.some(({ kind }) => kind === 'resume'))?.id;
    for (const { line, example } of examples) {
      const words = line
        .replaceAll('APPLICATION', String(id))
        .replace('TARGET', `file:${join(scratch.path, 'extract')}`)
        .replace('FOLDER', join(scratch.path, 'export'))
        .replace('PROOF', join(scratch.path, 'proof.ndjson'));
      // As a worker does at its start.
      if (line === 'webhook list')
        await database.query(
          `INSERT INTO intake.webhooks (advertiser_id, name, position) SELECT advertiser_id, 'default', 0 FROM intake.advertisers`,
        );
      const lines: string[] = [];
      const stdout = { write: (text: string) => lines.push(text), isTTY: false, columns: 80 };
      const stderr = { write: () => true, isTTY: false, columns: 80 };
      const signal = AbortSignal.timeout(600_000);
      const code = await runCli([...words.split(' '), '--json'], commands, { env, stdout, stderr, signal });
      expect({ line, code }).toEqual({ line, code: 0 });
      expect({ line, differs: findDifferences(JSON.parse(lines.at(-1) ?? ''), example) }).toEqual({
        line,
        differs: [],
      });
    }
  });

  test('every command is described', () => {
    for (const { name } of commands) {
      const hint = `docs/cli-json.md: describe the JSON of intake ${name}, with an example that this file runs`;
      expect(page, hint).toMatch(new RegExp(`intake ${name}\\b|\`${name}\``));
    }
  });
});
