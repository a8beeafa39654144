import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { choices } from '../../src/dev/sandbox/behaviour/choices.ts';
import { faultForm } from '../../src/dev/sandbox/behaviour/faults.ts';
import { createControl } from '../../src/dev/sandbox/http/control.ts';
import { createRequestLog } from '../../src/dev/sandbox/http/request-log.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { get } from '../support/servers/plain-client.ts';

const list = '/v1/advertiser/applications';
let sandbox: Sandbox;

beforeEach(async () => {
  sandbox = await openSandbox({
    applications: 5,
    advertisers: [{ advertiserId: 8n, credential: 'eight', applications: 3 }],
  });
});
afterEach(() => sandbox[Symbol.asyncDispose]());

async function control(method: string, path: string, body?: object) {
  const answer = await fetch(`${sandbox.url}/sandbox${path}`, {
    method,
    ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
  });
  const text = await answer.text();
  return { status: answer.status, text, json: () => JSON.parse(text) };
}

async function ids(credential = sandbox.credential): Promise<string[]> {
  const answer = await get(sandbox.url + list, { authorization: `SWS ${credential}`, accept: 'application/json' });
  return JSON.parse(answer.text).JobApplications.JobApplicationsList.map((one: { ID: number }) => String(one.ID));
}

describe('the control API', () => {
  test('changes choices of the account that is named, or of the first', async () => {
    expect((await control('PATCH', '/choices', { pageCap: 2 })).json().pageCap).toBe(2);
    await control('PATCH', '/choices?advertiser=8', { pageCap: 1 });
    expect([(await ids()).length, (await ids('eight')).length]).toEqual([2, 1]);
    expect((await control('GET', '/choices?advertiser=8')).json().pageCap).toBe(1);
  });

  test('adds, holds back, releases, changes and removes applications', async () => {
    const before = await ids();
    const [added] = (await control('POST', '/applications', { count: 1 })).json().ids;
    const [late] = (
      await control('POST', '/applications', { applications: [{ firstName: 'Late' }], held: true })
    ).json().ids;
    const [after] = (await control('POST', '/applications', { count: 1 })).json().ids;
    expect(await ids()).toEqual([...before, added, after]);
    expect(BigInt(late)).toBeLessThan(BigInt(after));
    await control('POST', '/release', { ids: [late] });
    expect(await ids()).toEqual([...before, added, late, after]);
    await control('DELETE', `/applications/${added}`);
    expect(await ids()).toEqual([...before, late, after]);
    await control('PATCH', `/applications/${late}`, {
      email: 'new@example.com',
      attach: [{ kind: 'resume', content: 'Newer.' }],
      detach: ['coverLetter'],
    });
    const [row] = (await control('GET', '/truth')).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter((one) => one.id === late);
    expect(row).toMatchObject({ firstName: 'Late', email: 'new@example.com' });
    expect(row.attachments.map((one: { kind: string }) => one.kind)).not.toContain('coverLetter');
    const resume = await get(`${sandbox.url}${list}/resume/${late}`, { authorization: `SWS ${sandbox.credential}` });
    expect(resume.text).toBe('Newer.');
  });

  test('arms, shows and ends faults', async () => {
    const { number } = (await control('POST', '/faults', { kind: 'fail', times: null })).json();
    expect((await get(sandbox.url + list, { authorization: `SWS ${sandbox.credential}` })).status).toBe(500);
    expect((await control('GET', '/faults')).json()).toMatchObject([
      { number, happened: 1, fault: { kind: 'fail', status: 500 } },
    ]);
    await control('DELETE', `/faults/${number}`);
    expect(await ids()).toHaveLength(5);
  });

  test('lists the requests received, without credentials', async () => {
    await ids();
    await get(`${sandbox.url}${list}?afterid=7`, { authorization: 'SWS wrong', accept: 'text/plain' });
    const { text, json } = await control('GET', '/requests');
    expect(json()).toMatchObject([
      {
        number: 1,
        method: 'GET',
        path: list,
        query: {},
        accept: 'application/json',
        authorized: true,
        advertiserId: String(sandbox.advertiserId),
        status: 200,
      },
      { number: 2, query: { afterid: '7' }, accept: 'text/plain', authorized: false, advertiserId: null, status: 401 },
    ]);
    expect(text).not.toContain(sandbox.credential);
    expect((await control('GET', '/requests?after=1')).json()).toHaveLength(1);
    await control('DELETE', '/requests');
    expect(sandbox.requests()).toEqual([]);
  });

  test('adds advertisers and starts and stops live arrivals', async () => {
    await control('POST', '/advertisers', { advertiserId: '9', credential: 'nine', applications: 1 });
    expect(await ids('nine')).toHaveLength(1);
    expect((await control('GET', '/advertisers')).json()).toHaveLength(3);
    await control('POST', '/live', { perMinute: 3000 });
    await expect.poll(() => sandbox.size).toBeGreaterThan(6);
    await control('POST', '/live', { perMinute: 0 });
    const { size } = sandbox;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(sandbox.size).toBe(size);
  });

  test.each([
    ['PATCH', '/choices', { order: 'sideways' }, /order/],
    ['POST', '/faults', { kind: 'earthquake' }, /kind/],
    ['POST', '/applications', { applications: [{ surname: 'X' }] }, /surname/],
    ['DELETE', '/applications/5', undefined, /No application 5/],
    ['GET', '/choices?advertiser=404', undefined, /no advertiser 404/],
  ])('%s %s with nonsense is answered with 400 and a reason', async (method, path, body, reason) => {
    const answer = await control(method, path, body);
    expect(answer.status).toBe(400);
    expect(answer.json().error).toMatch(reason);
  });

  test.each(['example.com', 'localhost.example.com', '10.0.0.1:80', '127.0.0.1.example.com', ''])(
    'refuses the host %j',
    async (host) => {
      const { port } = new URL(sandbox.url);
      const status = await new Promise((resolve, reject) => {
        request({ port, host: '127.0.0.1', path: '/sandbox/truth', setHost: false, headers: { host } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        })
          .on('error', reject)
          .end();
      });
      expect([400, 403]).toContain(status);
    },
  );

  test.each([
    ['127.0.0.1', 200],
    ['::1', 200],
    ['192.0.2.7', 403],
    ['2001:db8::1', 403],
  ])('asked from %s, under a name of this machine, answers %i', async (remoteAddress, status) => {
    const unused = () => expect.unreachable();
    const routes = createControl({
      ...{ accounts: [], find: unused, addAdvertiser: unused },
      log: createRequestLog(Date.now),
    });
    const env = { incoming: { socket: { remoteAddress } } };
    expect((await routes.request('/advertisers', { headers: { host: 'localhost:4010' } }, env)).status).toBe(status);
  });
});

test('the page of assumptions names every choice with its value, every fault, and no credential', async () => {
  sandbox.choose({ order: 'byDateDescending' });
  const { status, text } = await get(`${sandbox.url}/`, {});
  expect(status).toBe(200);
  for (const [name, { meaning }] of Object.entries(choices)) {
    expect(text).toContain(`<code>${name}</code>`);
    expect(text).toContain(meaning);
  }
  for (const form of faultForm.options) expect(text).toContain(`<code>${form.shape.kind.value}</code>`);
  expect(text).toContain('<strong>&quot;byDateDescending&quot;</strong>');
  expect(text.includes(sandbox.credential)).toBe(false);
});

test('the references of the OpenAPI document lead somewhere', async () => {
  const document = JSON.parse((await get(`${sandbox.url}/sandbox/openapi.json`, {})).text);
  const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name);
  expect(references.length).toBeGreaterThan(8);
  expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(references));
});
