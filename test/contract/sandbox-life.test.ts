import { expect, test } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { get } from '../support/servers/plain-client.ts';

const list = '/v1/advertiser/applications';

function ask(sandbox: Sandbox, path: string, accept = 'application/json') {
  return get(sandbox.url + list + path, { accept, authorization: `SWS ${sandbox.credential}` });
}

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

test('two screens in one application are a list in JSON and have a root in XML', async () => {
  const screen = (id: string) => ({ id, name: 'Twice', successful: true, questions: [] });
  await using sandbox = await openSandbox({ applications: 0 });
  const [id] = sandbox.add([{ screens: [screen('1'), screen('2')] }]) as [bigint];
  expect(JSON.parse((await ask(sandbox, `/screen/${id}`)).text).screen).toHaveLength(2);
  expect((await ask(sandbox, `/screen/${id}`, 'application/xml')).text).toMatch(
    /<screens><screen id="1".*<screen id="2".*<\/screens>$/,
  );
});

test('ids and credentials belong to one advertiser each, and nothing is added twice', async () => {
  await using sandbox = await openSandbox({ applications: 0, credential: 'mine' });
  expect(() => sandbox.addAdvertiser({ credential: 'mine' })).toThrow(/already exists/);
  sandbox.add([{ id: 5n }]);
  expect(() => sandbox.add([{ id: 5n }])).toThrow(/already exists/);
  expect(() => sandbox.change(6n, {})).toThrow(/No application 6/);
});
