// The independent checker: what it says about sweeps that follow each other, decisions, ids that cannot be read, audits, erased people and
// noted hashes, and its command. proof-rules.test.ts breaks every rule.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkProof } from '../../../examples/check-proof.ts';
import { startMs } from '../../simulation/judge.ts';
import { proveTwice } from '../../simulation/simulated-proof.ts';
import { append, certificateOf, claim, endOf, forge, toList } from '../../support/forged-proof.ts';

const { first, again: second, memory } = proveTwice({ rows: 300, page: 40 });
/** Both sweeps in one file, with the certificate of the second. */
const both = [second[0] as string, ...first.slice(1, -1), ...second.slice(1)];
const lastOf = (lines: readonly string[]) => /"last":"(\w+)"/.exec(lines[0] ?? '')?.[1];
const reasonsOf = (lines: readonly string[]) => {
  const { findings, certificates } = checkProof(lines);
  return [...findings, ...certificates.flatMap((one) => one.findings)].map(({ reason }) => reason);
};

describe('sweeps that follow each other', () => {
  test('are accepted with the certificate of the newest', () => {
    expect(checkProof(both)).toMatchObject({ verdict: 'proven', supported: true, findings: [] });
  });

  test('do not leave an older certificate in force', () => {
    const old = [first[0] as string, ...both.slice(1)];
    expect(checkProof(old)).toMatchObject({ verdict: 'forged', supported: false });
    expect(reasonsOf(old)).toContainEqual(expect.stringContaining('or was replaced'));
  });

  test('show that lines at the end of the one before were cut off', () => {
    const cut = forge(both, (lines) => lines.toSpliced(lines.findIndex(({ type }) => type === 'end') - 1, 1));
    expect(reasonsOf(cut)).toContain('lines of sweep 1 that it knew are not there');
  });

  test('are in their order, each once', () => {
    const twice = [...both.slice(0, -1), ...second.slice(1)];
    expect(checkProof(twice).verdict).toBe('forged');
  });
});

describe('certificates', () => {
  test('cover all ids: a gap is unproven, and so is a file without any', () => {
    const none = forge(second, ([head]) => void Object.assign(head, { certificates: [] }));
    const gap = forge(second, (lines) => void Object.assign(certificateOf(lines), { low: '2' }));
    for (const lines of [none, gap]) expect(checkProof(lines)).toMatchObject({ verdict: 'unproven', supported: true });
    expect(reasonsOf(none)).toEqual(['no certificate speaks of ids 1 to infinity']);
  });

  test('without evidence are refused', () => {
    const bare = forge(
      [second[0] as string, second.at(-1) as string],
      (lines) => void Object.assign(certificateOf(lines), { last: null }),
    );
    expect(checkProof(bare)).toMatchObject({ verdict: 'unproven', supported: false });
    expect(reasonsOf(bare)).toEqual(['no evidence of this sweep is kept']);
  });

  test('may say less than their sweep, because a later check has ended them', () => {
    const doubt = { certificate: 'unproven', risk: 'doubt', reason: 'an audit' };
    const ended = forge(second, (lines) => void Object.assign(certificateOf(lines), doubt));
    expect(checkProof(ended)).toMatchObject({ verdict: 'unproven', supported: true });
  });
});

test('a decision is shown, and accepts the deletion of rows only', () => {
  const decide = (ids: string) =>
    forge(
      second,
      append(() => ({ type: 'decision', at: startMs, by: 'ops', what: 'deletions', ids })),
    );
  const [id] = JSON.parse(second.at(-1) as string).rows[3];
  expect(checkProof(decide(id))).toMatchObject({ verdict: 'proven', supported: true });
  expect(checkProof(decide(id)).sweeps).toContain('ops accepted 1 ids (deletions)');
  expect(checkProof(decide('7')).verdict).toBe('forged');
});

describe('an id that cannot be read', () => {
  const { first: file } = proveTwice({ rows: 300, page: 40 }, 'poison-500-by-id');

  test('is a doubt that the end names', () => {
    const { verdict, supported } = checkProof(file);
    expect({ verdict, supported }).toEqual({ verdict: 'assumed', supported: true });
    expect(reasonsOf(file)).toContainEqual(expect.stringMatching(/^id \d+ could not be read$/));
    const silent = forge(file, (lines) => void Object.assign(endOf(lines), { open: [] }));
    expect(checkProof(silent).supported).toBe(false);
  });

  test('is no doubt if an operator accepted it before the sweep', () => {
    const accepted = forge(file, (lines) => {
      claim('proven', 'none')(lines);
      const ids = endOf(lines).open.map(([from]: string[]) => BigInt(from ?? 0));
      return void Object.assign(lines[1], { accepted: toList(ids) });
    });
    expect(checkProof(accepted)).toMatchObject({ verdict: 'proven', supported: true });
  });
});

test('more deletions than a sweep may find by itself are unproven, whatever the end says', () => {
  // Ids that the store holds and the source has never had look like deleted ones.
  const { again } = proveTwice({ rows: 300, page: 40 }, 'friendly', 40);
  expect(checkProof(again).verdict).toBe('unproven');
  const raised = forge(again, claim('assumed', 'harmless'));
  expect(checkProof(raised)).toMatchObject({ verdict: 'unproven', supported: false });
  expect(reasonsOf(raised)).toContainEqual(expect.stringMatching(/^\d+ stored ids are gone at once$/));
});

test('erased people leave their ids in the lines and in their rows', () => {
  const erased = forge(second, (lines) => {
    for (const row of lines.at(-1).rows) if (memory.held.has(BigInt(row[0]))) row.splice(1);
    return undefined;
  });
  expect(checkProof(erased)).toMatchObject({ verdict: 'proven', supported: true });
});

describe('a noted hash', () => {
  test('of the sweep is known, also from the sweep after it', () => {
    expect(checkProof(both, [`1:${lastOf(first)}`, `2:${lastOf(second)}`]).supported).toBe(true);
    // The lines of the first sweep were pruned.
    expect(checkProof(second, [`1:${lastOf(first)}`]).supported).toBe(true);
  });

  test('that no line has is forged, and one of a sweep that is not there is unproven', () => {
    const other = 'ab'.repeat(32);
    expect(checkProof(second, [`2:${other}`])).toMatchObject({ verdict: 'forged', supported: false });
    expect(checkProof(second, [`9:${other}`])).toMatchObject({ verdict: 'unproven', supported: false });
    // The sweep was given another number.
    expect(checkProof(second, [`9:${lastOf(second)}`])).toMatchObject({ verdict: 'forged' });
  });

  test('is written with its sweep', () => {
    expect(() => checkProof(second, ['ab'])).toThrow('SWEEP:HASH');
  });
});

test('any number of findings is reported', () => {
  // Stacks of 150,000 errors would take ten times as long as all the rest.
  const { stackTraceLimit } = Error;
  onTestFinished(() => void Object.assign(Error, { stackTraceLimit }));
  Error.stackTraceLimit = 0;
  const report = checkProof(Array.from({ length: 150_000 }, () => '{}'));
  expect(report.verdict).toBe('forged');
  expect(report.findings).toHaveLength(150_001);
});

describe('the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'check-proof-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (name: string, lines: readonly string[]) => {
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
    return join(folder, name);
  };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['examples/check-proof.ts', ...args], { encoding: 'utf8' });

  test('says what the proof is worth, and why', () => {
    const good = run(write('good', second));
    expect(good.status).toBe(0);
    expect(JSON.parse(good.stdout)).toMatchObject({
      verdict: 'proven',
      supported: true,
      advertiser: '7',
      exportedAt: expect.stringMatching(/^2026-/),
      certificates: [{ ids: '1 to infinity', sweep: '2', says: 'proven', supports: 'proven', refused: false }],
      findings: [],
    });
    const bad = run(write('bad', second.toSpliced(5, 1)));
    expect([bad.status, run(join(folder, 'good'), '--noted', `2:${'0'.repeat(64)}`).status]).toEqual([1, 1]);
    expect(JSON.parse(bad.stdout)).toMatchObject({ verdict: 'forged', supported: false });
  });

  test('ends with 2 for wrong arguments', () => {
    for (const args of [[], ['a', 'b'], ['--what'], [write('good', second), '--noted', 'x'], [join(folder, 'none')]]) {
      const { status, stderr } = run(...args);
      expect(status).toBe(2);
      expect(stderr).toContain('usage: node examples/check-proof.ts FILE');
    }
  });
});
