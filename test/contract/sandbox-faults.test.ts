import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type Fault, type FaultPlan, faultForm } from '../../src/dev/sandbox/behaviour/faults.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { get, type PlainAnswer } from '../support/plain-client.ts';

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

const met = (sandbox: Sandbox, kind: Fault['kind']) =>
  expect.poll(() => sandbox.requests().flatMap(({ faults }) => faults)).toContain(kind);

const applications = (answer: PlainAnswer) => JSON.parse(answer.text).JobApplications.JobApplicationsList;

const plays: { readonly [Kind in Fault['kind']]: (stage: Stage) => Promise<void> } = {
  async throttle({ ask, arm }) {
    arm({ kind: 'throttle', seconds: 7, retryAfter: 'date' });
    arm({ kind: 'throttle', seconds: 7, skip: 1 });
    for (const header of [new Date(now + 7000).toUTCString(), '7']) {
      const answer = await ask();
      expect([answer.status, answer.headers['retry-after']]).toEqual([429, header]);
    }
  },
  async fail({ ask, arm }) {
    arm({ kind: 'fail', status: 503 });
    expect((await ask()).status).toBe(503);
  },
  async refuse({ ask, arm }) {
    arm({ kind: 'refuse', times: 2 });
    expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([401, 401, 200]);
  },
  async html({ ask, arm, resume }) {
    arm({ kind: 'html', times: 2 });
    for (const path of [list, resume]) {
      const answer = await ask(path);
      expect([answer.status, answer.headers['content-type'], answer.text.slice(0, 9)]).toEqual([
        200,
        'text/html; charset=utf-8',
        '<!DOCTYPE',
      ]);
    }
  },
  async emptyBody({ ask, arm }) {
    arm({ kind: 'emptyBody' });
    const answer = await ask();
    expect([answer.status, answer.text]).toEqual([200, '']);
  },
  async redirect({ ask, arm, sandbox }) {
    arm({ kind: 'redirect' });
    arm({ kind: 'redirect', skip: 1, status: 307, location: 'https://elsewhere.example.net/' });
    const same = await ask();
    expect([same.status, same.headers.location]).toEqual([302, sandbox.url + list]);
    const other = await ask();
    expect([other.status, other.headers.location]).toEqual([307, 'https://elsewhere.example.net/']);
  },
  async reset({ ask, arm }) {
    arm({ kind: 'reset', at: 'start' });
    await expect(ask()).rejects.toThrow(/ECONNRESET|hang up/);
    arm({ kind: 'reset', at: 'headers' });
    await expect(ask()).rejects.toThrow();
    arm({ kind: 'reset', at: 'afterHeaders' });
    expect(await ask()).toMatchObject({ status: 200, complete: false, text: '' });
    arm({ kind: 'reset', at: 'body' });
    const cut = await ask();
    const whole = await ask();
    expect(cut.complete).toBe(false);
    expect(whole.text.startsWith(cut.text)).toBe(true);
    expect(cut.body.length).toBeGreaterThan(0);
  },
  async hang({ ask, arm, sandbox }) {
    arm({ kind: 'hang' });
    const answer = ask();
    await met(sandbox, 'hang');
    await sandbox[Symbol.asyncDispose]();
    await expect(answer).rejects.toThrow();
  },
  async slow({ ask, arm, sandbox }) {
    arm({ kind: 'slow', delayMs: 150 });
    const started = performance.now();
    const late = ask();
    await met(sandbox, 'slow');
    sandbox.add(1);
    expect(applications(await late)).toHaveLength(3);
    expect(performance.now() - started).toBeGreaterThanOrEqual(145);
  },
  async drip({ ask, arm, resume }) {
    arm({ kind: 'drip', pieceBytes: 200, everyMs: 30 });
    const started = performance.now();
    expect((await ask(resume)).body).toHaveLength(1000);
    expect(performance.now() - started).toBeGreaterThanOrEqual(120);
  },
  async cut({ ask, arm, resume }) {
    arm({ kind: 'cut', framing: 'chunked' });
    expect(await ask(resume)).toMatchObject({ status: 200, complete: false, text: 'x'.repeat(500) });
    arm({ kind: 'cut', framing: 'contentLength', keep: 0.1 });
    const short = await ask(resume);
    expect(short).toMatchObject({ status: 200, complete: false, text: 'x'.repeat(100) });
    expect(short.headers['content-length']).toBe('1000');
    arm({ kind: 'cut', framing: 'closeDelimited', keep: 0.9 });
    // The most dangerous cut: HTTP regards this answer as complete.
    expect(await ask(resume)).toMatchObject({ status: 200, complete: true, text: 'x'.repeat(900) });
  },
  async wrongLength({ ask, arm, resume, sandbox }) {
    arm({ kind: 'wrongLength', byBytes: 10 });
    const long = await ask(resume);
    expect([long.headers['content-length'], long.complete, long.body.length]).toEqual(['1010', false, 1000]);
    arm({ kind: 'wrongLength', byBytes: -10 });
    const short = await readRaw(sandbox, resume, 'close');
    expect(short).toContain('Content-Length: 990\r\n');
    expect(short.endsWith(`\r\n\r\n${'x'.repeat(1000)}`)).toBe(true);
  },
  async gzip({ ask, arm, resume }) {
    arm({ kind: 'gzip' });
    const answer = await ask(resume);
    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(answer.body).toString()).toBe('x'.repeat(1000));
  },
  async gzipBomb({ ask, arm }) {
    arm({ kind: 'gzipBomb', sizeBytes: 5_000_000 });
    const answer = await ask();
    expect(answer.body.length).toBeLessThan(20_000);
    expect(gunzipSync(answer.body)).toHaveLength(5_000_000);
  },
  async flood({ ask, arm, resume }) {
    arm({ kind: 'flood', sizeBytes: 3_000_001 });
    expect((await ask(resume)).body).toHaveLength(3_000_001);
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
  async otherAdvertiser({ ask, arm }) {
    arm({ kind: 'otherAdvertiser', advertiserId: 5 });
    expect(JSON.parse((await ask()).text).JobApplications.AdvertiserID).toBe(5);
    expect(JSON.parse((await ask()).text).JobApplications.AdvertiserID).toBe(20_000_001);
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
  async otherBytes({ ask, arm, resume }) {
    arm({ kind: 'otherBytes', times: 2 });
    const [first, second, honest] = [await ask(resume), await ask(resume), await ask(resume)];
    expect(first.body).not.toEqual(second.body);
    expect(honest.body).toHaveLength(1000);
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

test.each(faultForm.options.map((form) => form.shape.kind.value))('%s happens', async (kind) => {
  await using stage = await set();
  await plays[kind](stage);
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
