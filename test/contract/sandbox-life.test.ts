import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { get } from '../support/plain-client.ts';

const list = '/v1/advertiser/applications';

function ask(sandbox: Sandbox, path: string, accept = 'application/json') {
  return get(sandbox.url + list + path, { accept, authorization: `SWS ${sandbox.credential}` });
}

async function listed(sandbox: Sandbox) {
  return JSON.parse((await ask(sandbox, '')).text).JobApplications.JobApplicationsList;
}

test('a late arrival has the id and date of its beginning and shows only after its release', async () => {
  let now = Date.UTC(2026, 0, 1);
  await using sandbox = await openSandbox({ applications: 2, now: () => now });
  const [late] = sandbox.holdBack(1) as [bigint];
  now += 3_600_000;
  const [next] = sandbox.add(1) as [bigint];
  expect((await listed(sandbox)).map((one: { ID: number }) => one.ID)).not.toContain(Number(late));
  expect((await ask(sandbox, `/resume/${late}`)).status).toBe(404);
  expect([...sandbox.truth()].some((row) => row.id === late)).toBe(false);
  expect(sandbox.release()).toEqual([late]);
  const ids = (await listed(sandbox)).map((one: { ID: number }) => one.ID);
  expect(ids.slice(-2)).toEqual([Number(late), Number(next)]);
  expect([...sandbox.truth()].at(-2)?.submittedAt).toBe(now - 3_600_000);
  expect(sandbox.release()).toEqual([]);
});

test('any text may stand in a member or as a whole element, in JSON and in XML, and the truth says which', async () => {
  await using sandbox = await openSandbox({ applications: 0 });
  sandbox.add([
    {
      id: 1n,
      raw: { ID: '"0x1F"', Phone: '"\\u0000"', DateSubmitted: '"/Date(-62135596800000)/"', Extra: '{"a":[1]}' },
      rawXml: { Phone: '&#0;' },
    },
    { id: 2n, element: { json: '[[[7]]]', xml: '<ID>seven</ID>' } },
    { id: 3n, attachments: [{ kind: 'portfolio' }, { kind: 'resume', raw: { Type: 'null', Size: '"12"' } }] },
    { id: 9_223_372_036_854_775_807n },
  ]);
  const json = (await ask(sandbox, '')).text;
  expect(json).toContain('{"ID":"0x1F","DateSubmitted":"/Date(-62135596800000)/"');
  expect(json).toContain('"Phone":"\\u0000"');
  expect(json).toContain('"Extra":{"a":[1]}},[[[7]]],{"ID":3,');
  expect(json).toContain('"Type":"portfolio"');
  expect(json).toContain('"Size":"12","Type":null');
  expect(json).toContain('"ID":9223372036854775807,');
  const xml = (await ask(sandbox, '', 'application/xml')).text;
  expect(xml).toContain('<ID>0x1F</ID>');
  expect(xml).toContain('<Phone>&#0;</Phone>');
  expect(xml).toContain('<JobApplication><ID>seven</ID></JobApplication>');
  expect(Array.from(sandbox.truth(), (row) => row.altered)).toEqual([
    ['ID', 'Phone', 'DateSubmitted', 'Extra'],
    ['*'],
    [],
    [],
  ]);
  const [next] = sandbox.add(1) as [bigint];
  expect(next).toBeLessThan(1_000_000n);
});

test('names that careless software spoils come unharmed, and are escaped in XML', async () => {
  const names = [
    "O'Brien",
    '👩‍🚀 & "co"',
    '\u202eright to left',
    'x'.repeat(10_000),
    ' padded ',
    'a\tb\r\nc',
    '=SUM(A1)',
  ];
  await using sandbox = await openSandbox({ applications: 0 });
  sandbox.add(names.map((lastName) => ({ lastName })));
  expect((await listed(sandbox)).map((one: { LastName: string }) => one.LastName)).toEqual(names);
  const xml = (await ask(sandbox, '', 'application/xml')).text;
  expect(xml).toContain('<LastName>a&#x9;b&#xD;&#xA;c</LastName>');
  expect(xml).not.toMatch(/&(?!(?:lt|gt|amp|quot|#x[0-9A-F]+);)/);
});

test('a file of any size is served without being held', async () => {
  await using sandbox = await openSandbox({ applications: 0 });
  const [id] = sandbox.add([{ attachments: [{ kind: 'resume', sizeBytes: 2_000_003 }] }]) as [bigint];
  const { body } = await ask(sandbox, `/resume/${id}`);
  const [row] = sandbox.truth();
  expect([body.length, hash('sha256', body)]).toEqual([2_000_003, row?.attachments[0]?.sha256]);
});

test('two screens in one application are a list in JSON and have a root in XML', async () => {
  const screen = (id: string) => ({ id, name: 'Twice', successful: true, questions: [] });
  await using sandbox = await openSandbox({ applications: 0 });
  const [id] = sandbox.add([{ screens: [screen('1'), screen('2')] }]) as [bigint];
  expect(JSON.parse((await ask(sandbox, `/screen/${id}`)).text).screen).toHaveLength(2);
  expect((await ask(sandbox, `/screen/${id}`, 'application/xml')).text).toMatch(
    /<screens><screen id="1".*<screen id="2".*<\/screens>$/,
  );
});

test('any text may be the body of a screen', async () => {
  const rawScreen = {
    json: '{"screen":{"@id":7,"question":',
    xml: '<!DOCTYPE screen [<!ENTITY a "b">]><screen>&a;</screen>',
  };
  await using sandbox = await openSandbox({ applications: 0 });
  const [id] = sandbox.add([{ rawScreen, screens: [] }]) as [bigint];
  expect((await ask(sandbox, `/screen/${id}`)).text).toBe(rawScreen.json);
  expect((await ask(sandbox, `/screen/${id}`, 'application/xml')).text).toBe(rawScreen.xml);
  const [row] = sandbox.truth();
  expect(row?.altered).toEqual(['screen']);
  expect(row?.attachments.at(-1)).toMatchObject({ kind: 'screen', sizeBytes: rawScreen.json.length });
});

test('ids and credentials belong to one advertiser each, and nothing is added twice', async () => {
  await using sandbox = await openSandbox({ applications: 0, credential: 'mine' });
  expect(() => sandbox.addAdvertiser({ credential: 'mine' })).toThrow(/already exists/);
  sandbox.add([{ id: 5n }]);
  expect(() => sandbox.add([{ id: 5n }])).toThrow(/already exists/);
  expect(() => sandbox.change(6n, {})).toThrow(/No application 6/);
});
