import { hash } from 'node:crypto';
import { PDFDocument } from '@cantoo/pdf-lib';
import { unzipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TruthRow } from '../../src/dev/sandbox/account/truth.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { questionTypes } from '../../src/dev/sandbox/people/questionnaires.ts';
import { get } from '../support/servers/plain-client.ts';

const endsAt = Date.UTC(2026, 5, 30, 3);
const list = '/v1/advertiser/applications';
const folders: Record<string, string> = {
  resume: 'resume',
  coverLetter: 'coverletter',
  selectionCriteria: 'selectioncriteria',
};

let sandbox: Sandbox;
let truth: TruthRow[];
const ask = (
  path: string,
  accept: string | undefined = 'application/json',
  authorization = `SWS ${sandbox.credential}`,
) => get(sandbox.url + path, { accept, authorization });

beforeAll(async () => {
  sandbox = await openSandbox({
    seed: 11,
    applications: 400,
    advertiserId: 4_242n,
    credential: 'open sesame',
    now: () => endsAt,
  });
  truth = [...sandbox.truth()];
});
afterAll(() => sandbox[Symbol.asyncDispose]());

test('the list is drawn in JSON as the description draws it', async () => {
  const row = truth.find((one) => one.jobReference !== null && one.jobSeekingInfo?.jobTitle) as TruthRow;
  const answer = await ask(`${list}?afterid=${row.id - 1n}&beforeid=${row.id + 1n}&include=primaryjobseekinginfo`);
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  const info = row.jobSeekingInfo;
  const text =
    `{"JobApplications":{"AdvertiserID":4242,"AfterDate":null,"AfterID":"${row.id - 1n}","BeforeDate":null,"BeforeID":"${row.id + 1n}",` +
    `"AgentID":null,"JobApplicationsList":[{"ID":${row.id},"DateSubmitted":"/Date(${row.submittedAt}+1000)/","Email":${JSON.stringify(row.email)},` +
    `"FirstName":${JSON.stringify(row.firstName)},"LastName":${JSON.stringify(row.lastName)},"Phone":${JSON.stringify(row.phone)},` +
    `"JobSeekerID":"${row.jobSeekerId}","JobReference":${JSON.stringify(row.jobReference)},"Attachments":[` +
    row.attachments
      .map((one) => {
        const path = `advertiser/applications/${one.kind.toLowerCase()}/${row.id}`;
        return `{"DateUploaded":"/Date(${one.uploadedAt}+1000)/","HasVirus":${one.hasVirus},"Hash":"${one.sourceHash}","Href":"${path}","Size":${one.sizeBytes},"Type":"${one.kind}"}`;
      })
      .join(',') +
    `],"PrimaryJobSeekingInfo":{"JobTitle":${JSON.stringify(info?.jobTitle)},"CompanyName":${JSON.stringify(info?.companyName)},"TimeInRole":${info?.timeInRoleMonths},"IsNewToWorkForce":false}}]}}`;
  expect(answer.text).toBe(text);
});

test.each([
  ['none', ''],
  ['another', 'SWS wrong'],
  ['another scheme', 'Bearer open sesame'],
  ['a prefix', 'SWS open'],
])('credentials %s: every route refuses', async (_, authorization) => {
  for (const path of [
    list,
    ...['resume', 'coverletter', 'selectioncriteria', 'screen'].map((folder) => `${list}/${folder}/${truth[0]?.id}`),
  ]) {
    expect((await ask(path, 'application/json', authorization)).status).toBe(401);
  }
});

test('downloads give real files with the size, digest and headers that the truth names', async () => {
  const met = new Set<string>();
  for (const row of truth.slice(0, 60)) {
    for (const one of row.attachments.filter(({ kind, hasVirus }) => kind !== 'screen' && hasVirus !== true)) {
      const { status, headers, body } = await ask(`${list}/${folders[one.kind]}/${row.id}`);
      expect({ status, ...headers }).toMatchObject({
        status: 200,
        'content-type': one.contentType,
        'content-disposition': `attachment; filename=${one.fileName}`,
        'cache-control': 'private',
        'transfer-encoding': 'chunked',
      });
      const digests = [body.length, hash('sha256', body), hash('md5', body)];
      expect(digests).toEqual([one.sizeBytes, one.sha256, one.sourceHash]);
      const format = one.fileName?.split('.').at(-1) as string;
      met.add(format);
      if (format === 'pdf') expect((await PDFDocument.load(body)).getPageCount()).toBe(1);
      else if (format === 'docx') {
        const document = unzipSync(body)['word/document.xml'] as Uint8Array;
        expect(Buffer.from(document).toString()).toContain(row.email);
      } else expect(body.toString()).toContain(`${row.firstName} ${row.lastName}`);
    }
  }
  expect([...met].sort()).toEqual(['docx', 'pdf', 'txt']);
});

describe('the screen', () => {
  test('is drawn in JSON and XML as the description draws it', async () => {
    const [id] = sandbox.add([
      {
        screens: [
          {
            id: '5',
            name: 'Forklift & co',
            successful: false,
            questions: [
              {
                id: '51',
                type: 'True/False',
                text: 'Is 1 < 2?',
                answers: [
                  { id: 'a', text: 'True', selected: true },
                  { id: 'b', text: 'False', selected: false },
                ],
              },
              { id: '52', type: 'Text', text: 'Say "hello"', answers: [{ id: 'c', text: 'a & b', selected: true }] },
            ],
          },
        ],
      },
    ]);
    const json = await ask(`${list}/screen/${id}`);
    expect(json.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(json.text).toBe(
      '{"screen":{"@id":"5","@name":"Forklift & co","@successful":"False","question":[' +
        '{"@id":"51","@type":"True/False","@text":"Is 1 < 2?","answer":[{"@id":"a","@selected":"True","#text":"True"},{"@id":"b","#text":"False"}]},' +
        '{"@id":"52","@type":"Text","@text":"Say \\"hello\\"","answer":{"@id":"c","@selected":"True","#text":"a & b"}}]}}',
    );
    const xml = await ask(`${list}/screen/${id}`, 'application/xml');
    expect(xml.headers['content-type']).toBe('application/xml; charset=utf-8');
    expect(xml.text).toBe(
      '<?xml version="1.0" encoding="utf-8"?><screen id="5" name="Forklift &amp; co" successful="False">' +
        '<question id="51" type="True/False" text="Is 1 &lt; 2?"><answer id="a" selected="True">True</answer><answer id="b">False</answer></question>' +
        '<question id="52" type="Text" text="Say &quot;hello&quot;"><answer id="c" selected="True">a &amp; b</answer></question></screen>',
    );
    sandbox.remove(id as bigint);
  });

  test('shows all five types of question, passed and failed', () => {
    const screens = truth.flatMap((row) => row.screens);
    const types = screens.flatMap(({ questions }) => questions.map(({ type }) => type));
    expect(new Set(types)).toEqual(new Set(questionTypes));
    expect(new Set(screens.map(({ outcome }) => outcome))).toEqual(new Set(['pass', 'fail']));
  });
});

test('the people cannot be written to or rung up', () => {
  for (const row of truth) {
    expect(row.email).toMatch(/^[a-z]+\.[a-z]+\d+@(mail\.)?example\.(com|org|net)$/);
    expect(row.phone.replace(/[ ()]/g, '').replace('+61', '0')).toMatch(/^(049157\d{4}|0[2378](5550|7010)\d{4})$/);
  }
});
