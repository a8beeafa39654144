import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Fault, FaultPlan } from '../../src/dev/sandbox/behaviour/faults.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { get, type PlainAnswer } from '../support/servers/plain-client.ts';

const list = '/v1/advertiser/applications';
const now = Date.UTC(2026, 3, 30);

interface Stage {
  readonly sandbox: Sandbox;
  ask(path?: string, accept?: string): Promise<PlainAnswer>;
  arm(plan: FaultPlan): void;
  readonly resume: string;
}

async function set(): Promise<Stage & AsyncDisposable> {
  const sandbox = await openSandbox({ applications: 0, now: () => now });
  const [id] = sandbox.add([{ attachments: [{ kind: 'resume', content: 'x'.repeat(1000) }] }, {}, {}]);
  return {
    sandbox,
    resume: `${list}/resume/${id}`,
    ask: (path = list, accept = 'application/json') =>
      get(sandbox.url + path, { accept, authorization: `SWS ${sandbox.credential}` }),
    arm: (plan) => void sandbox.fault(plan),
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}

const applications = (answer: PlainAnswer) => JSON.parse(answer.text).JobApplications.JobApplicationsList;

/** Faults that no test of a trap shows. */
const plays: { readonly [Kind in Fault['kind']]?: (stage: Stage) => Promise<void> } = {
  async gzipBomb({ ask, arm }) {
    arm({ kind: 'gzipBomb', sizeBytes: 5_000_000 });
    const answer = await ask();
    expect(answer.body.length).toBeLessThan(20_000);
    expect(gunzipSync(answer.body)).toHaveLength(5_000_000);
  },
  async closeAfter({ arm, sandbox }) {
    // Without the fault the server also closes an idle keep-alive connection, but seconds later.
    const closed: string[] = [];
    const kept = readRaw(sandbox, list, 'keep-alive').then(() => closed.push('kept'));
    await expect.poll(() => sandbox.requests()).toHaveLength(1);
    arm({ kind: 'closeAfter' });
    const text = await readRaw(sandbox, list, 'keep-alive');
    expect(closed).toEqual([]);
    await sandbox[Symbol.asyncDispose]();
    await kept;
    expect(text).toContain('Connection: keep-alive\r\n');
    expect(text.endsWith('\r\n0\r\n\r\n')).toBe(true);
  },
  async poison({ ask, arm }) {
    arm({ kind: 'poison', json: '{"ID":"1e3","__proto__":{"x":1}}', xml: '<ID>1e3</ID>', position: 1, times: 2 });
    expect((await ask()).text).toMatch(/\},\{"ID":"1e3","__proto__":\{"x":1\}\},\{"ID":/);
    expect((await ask(list, 'application/xml')).text).toContain(
      '</JobApplication><JobApplication><ID>1e3</ID></JobApplication><JobApplication>',
    );
  },
  async duplicate({ ask, arm }) {
    arm({ kind: 'duplicate' });
    const equal = applications(await ask());
    expect(equal).toHaveLength(4);
    expect(equal[3]).toEqual(equal[0]);
    arm({ kind: 'duplicate', differing: true });
    const differing = applications(await ask());
    expect([differing[3].ID, differing[3].Email]).toEqual([differing[0].ID, 'twice@example.com']);
  },
  async grow({ ask, arm, sandbox }) {
    arm({ kind: 'grow', times: null, on: 'list' });
    expect([applications(await ask()).length, applications(await ask()).length, sandbox.size]).toEqual([4, 5, 5]);
  },
};

/** Everything that one connection receives until the server closes it. */
function readRaw(sandbox: Sandbox, path: string, connection: string): Promise<string> {
  const { port, host } = new URL(sandbox.url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: ${connection}\r\nAuthorization: SWS ${sandbox.credential}\r\n\r\n`,
      );
    });
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece;
    });
    socket.on('error', reject).on('close', () => resolve(text));
  });
}

test.each(Object.entries(plays))('%s happens', async (kind, play) => {
  await using stage = await set();
  await play(stage);
  expect(stage.sandbox.requests().flatMap((entry) => entry.faults)).toContain(kind);
});

test('a fault meets only the paths, the application and the count it was meant for', async () => {
  await using stage = await set();
  const { ask, arm, resume, sandbox } = stage;
  const other = `${list}/resume/${sandbox.add([{}])[0]}`;
  arm({ kind: 'fail', on: 'files', applicationId: resume.split('/').at(-1) ?? '', skip: 1, times: 2 });
  const statuses = [];
  for (const path of [list, other, resume, resume, other, resume, resume]) statuses.push((await ask(path)).status);
  expect(statuses).toEqual([200, 200, 200, 500, 200, 500, 200]);
  expect(sandbox.faults()).toMatchObject([{ number: 1, happened: 2 }]);
});

test('a fault with a probability follows the seed', async () => {
  const runs = [];
  for (const seed of [1, 1, 2]) {
    await using sandbox = await openSandbox({ seed, applications: 0 });
    sandbox.fault({ kind: 'fail', times: null, probability: 0.3 });
    const statuses = [];
    for (let request = 0; request < 60; request += 1) {
      statuses.push((await get(sandbox.url + list, { authorization: `SWS ${sandbox.credential}` })).status);
    }
    runs.push(statuses);
  }
  expect(runs[0]).toEqual(runs[1]);
  expect(runs[0]).not.toEqual(runs[2]);
  const failed = runs[0]?.filter((status) => status === 500).length;
  expect(failed).toBeGreaterThan(6);
  expect(failed).toBeLessThan(32);
});
