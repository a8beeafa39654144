import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { PDFDocument } from '@cantoo/pdf-lib';
import { XMLParser } from 'fast-xml-parser';
import { unzipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TruthRow } from '../../src/dev/sandbox/account/truth.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { questionTypes } from '../../src/dev/sandbox/people/questionnaires.ts';
import { get } from '../support/plain-client.ts';

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

describe('the list', () => {
  test('is drawn in JSON as the description draws it', async () => {
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

  test('holds every application of the truth, in JSON and in XML, and nothing else', async () => {
    const json = JSON.parse((await ask(`${list}?include=primaryjobseekinginfo`)).text).JobApplications
      .JobApplicationsList;
    const xmlAnswer = await ask(`${list}?include=primaryjobseekinginfo`, 'application/xml');
    expect(xmlAnswer.headers['content-type']).toBe('application/xml; charset=utf-8');
    const parser = new XMLParser({
      parseTagValue: false,
      ignoreAttributes: false,
      isArray: (name) => name === 'Attachment',
    });
    const xml = parser.parse(xmlAnswer.text).JobApplications.JobApplicationsList.JobApplication;
    expect(json.map(fromJson)).toEqual(truth.map(toComparable));
    expect(xml.map(fromXml)).toEqual(truth.map(toComparable));
  });

  test('carries job-seeking information only when asked, and only where there is some', async () => {
    const without = JSON.parse((await ask(list)).text).JobApplications.JobApplicationsList;
    const with_ = JSON.parse((await ask(`${list}?include=primaryjobseekinginfo`)).text).JobApplications
      .JobApplicationsList;
    expect(without.filter((one: object) => 'PrimaryJobSeekingInfo' in one)).toEqual([]);
    const share = with_.filter((one: object) => 'PrimaryJobSeekingInfo' in one).length / truth.length;
    expect(share).toBeGreaterThan(0.6);
    expect(share).toBeLessThan(0.8);
  });

  test('echoes date filters and honours them', async () => {
    const middle = truth[200] as TruthRow;
    const text = new Date(middle.submittedAt + 36_000_000).toISOString().slice(0, 19);
    const body = JSON.parse((await ask(`${list}?afterdate=${text}`)).text).JobApplications;
    const bound = Math.floor(middle.submittedAt / 1000) * 1000;
    expect(body.AfterDate).toBe(`/Date(${bound}+1000)/`);
    expect(body.JobApplicationsList).toHaveLength(truth.filter((one) => one.submittedAt > bound).length);
    const before = JSON.parse((await ask(`${list}?beforedate=${text}`)).text).JobApplications;
    expect(before.JobApplicationsList).toHaveLength(truth.filter((one) => one.submittedAt < bound).length);
  });
});

describe('credentials', () => {
  test.each([
    ['none', ''],
    ['another', 'SWS wrong'],
    ['another scheme', 'Bearer open sesame'],
    ['a prefix', 'SWS open'],
  ])('%s: every route refuses', async (_, authorization) => {
    for (const path of [
      list,
      ...['resume', 'coverletter', 'selectioncriteria', 'screen'].map((folder) => `${list}/${folder}/${truth[0]?.id}`),
    ]) {
      expect((await ask(path, 'application/json', authorization)).status).toBe(401);
    }
  });

  test('decide which advertiser is meant', async () => {
    const other = sandbox.addAdvertiser({ advertiserId: 77n, credential: 'other', applications: 2 });
    const mine = JSON.parse((await ask(list)).text).JobApplications;
    const theirs = JSON.parse((await ask(list, 'application/json', 'SWS other')).text).JobApplications;
    expect([mine.AdvertiserID, mine.JobApplicationsList.length]).toEqual([4242, 400]);
    expect([theirs.AdvertiserID, theirs.JobApplicationsList.length]).toEqual([77, 2]);
    other.choose({ pageCap: 1 });
    expect(sandbox.choices.pageCap).toBe(null);
  });
});

describe('downloads', () => {
  test('give the bytes whose size and digest the truth names, with the headers of the description', async () => {
    for (const row of truth.slice(0, 60)) {
      for (const one of row.attachments.filter(({ kind, hasVirus }) => kind !== 'screen' && hasVirus !== true)) {
        const answer = await ask(`${list}/${folders[one.kind]}/${row.id}`);
        expect(answer.status).toBe(200);
        expect(answer.headers).toMatchObject({
          'content-type': one.contentType,
          'content-disposition': `attachment; filename=${one.fileName}`,
          'cache-control': 'private',
          'transfer-encoding': 'chunked',
        });
        expect([answer.body.length, hash('sha256', answer.body), hash('md5', answer.body)]).toEqual([
          one.sizeBytes,
          one.sha256,
          one.sourceHash,
        ]);
      }
    }
  });

  test('are real PDF, DOCX and TXT files about the person', async () => {
    const met = new Set<string>();
    for (const row of truth.slice(0, 60)) {
      for (const one of row.attachments.filter(({ kind, hasVirus }) => kind !== 'screen' && hasVirus !== true)) {
        const { body } = await ask(`${list}/${folders[one.kind]}/${row.id}`);
        const format = one.fileName?.split('.').at(-1) as string;
        met.add(format);
        if (format === 'pdf') {
          expect((await PDFDocument.load(body, { throwOnInvalidObject: true })).getPageCount()).toBe(1);
        } else if (format === 'docx') {
          const document = unzipSync(body)['word/document.xml'] as Uint8Array;
          expect(body.readUInt32LE(body.lastIndexOf('PK\x01\x02') + 16)).toBe(crc32(document));
          expect(Buffer.from(document).toString()).toContain(row.email);
        } else expect(body.toString()).toContain(`${row.firstName} ${row.lastName}`);
      }
    }
    expect([...met].sort()).toEqual(['docx', 'pdf', 'txt']);
  });

  test('of an infected file are empty', async () => {
    const infected = truth.flatMap((row) =>
      row.attachments.filter((one) => one.hasVirus === true).map((one) => ({ row, one })),
    );
    expect(infected.length).toBeGreaterThan(0);
    for (const { row, one } of infected) {
      const answer = await ask(`${list}/${folders[one.kind]}/${row.id}`);
      expect([answer.status, answer.body.length, one.sizeBytes, one.sha256]).toEqual([200, 0, 0, null]);
    }
  });
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

  test('of every application equals the truth, and all five types of question occur', async () => {
    const types = new Set<string>();
    for (const row of truth.filter((one) => one.screens.length > 0).slice(0, 80)) {
      const { screen } = JSON.parse((await ask(`${list}/screen/${row.id}`)).text);
      const [told] = row.screens;
      expect([screen['@id'], screen['@name'], screen['@successful']]).toEqual([
        told?.screenId,
        told?.name,
        told?.outcome === 'pass' ? 'True' : 'False',
      ]);
      for (const [index, question] of screen.question.entries()) {
        types.add(question['@type']);
        const answers = [question.answer].flat();
        expect(Array.isArray(question.answer)).toBe(question['@type'] !== 'Text');
        expect(
          answers.map((one) => ({ answerId: one['@id'], text: one['#text'], selected: one['@selected'] === 'True' })),
        ).toEqual(told?.questions[index]?.answers);
      }
      const listed = row.attachments.find((one) => one.kind === 'screen');
      for (const format of ['json', 'xml'] as const) {
        const { body } = await ask(`${list}/screen/${row.id}`, `application/${format}`);
        expect(hash('sha256', body)).toBe(listed?.screenSha256?.[format]);
      }
    }
    expect([...types].sort()).toEqual([...questionTypes].sort());
    expect(new Set(truth.flatMap((row) => row.screens.map((one) => one.outcome)))).toEqual(new Set(['pass', 'fail']));
  });
});

describe('the people', () => {
  test('cannot be written to or rung up', () => {
    for (const row of truth) {
      expect(row.email).toMatch(/^[a-z]+\.[a-z]+\d+@(mail\.)?example\.(com|org|net)$/);
      expect(row.phone.replace(/[ ()]/g, '').replace('+61', '0')).toMatch(/^(049157\d{4}|0[2378](5550|7010)\d{4})$/);
    }
  });

  test('apply again with the same resume, to few jobs mostly, some without a reference, in waking hours', () => {
    const resumes = truth.flatMap((row) =>
      row.attachments.filter((one) => one.kind === 'resume' && one.sha256).map((one) => one.sha256),
    );
    expect(new Set(resumes).size).toBeLessThan(resumes.length * 0.95);
    const references = Map.groupBy(truth, (row) => row.jobReference);
    expect(references.size).toBeGreaterThan(20);
    const sizes = [...references.values()].map((rows) => rows.length).sort((a, b) => b - a);
    expect(sizes[0]).toBeGreaterThan(truth.length / 10);
    expect(truth.some((row) => row.jobReference === null)).toBe(true);
    const asleep = truth.filter((row) => new Date(row.submittedAt + 36_000_000).getUTCHours() < 6).length;
    expect(asleep / truth.length).toBeLessThan(0.1);
    const dates = truth.map((row) => row.submittedAt);
    expect(dates).toEqual(dates.toSorted((a, b) => a - b));
    expect(dates.at(-1)).toBeLessThanOrEqual(endsAt);
    expect(dates[0]).toBeGreaterThan(endsAt - 365 * 86_400_000);
    expect(new Set(truth.map((row) => row.attachments.length))).toEqual(new Set([1, 2, 3, 4]));
  });
});

/** The fields of an application that both JSON and XML can express. */
function toComparable(row: TruthRow): object {
  const { id, email, firstName, lastName, phone, jobSeekerId, jobReference, jobSeekingInfo } = row;
  const attachments = row.attachments.map(({ kind, hasVirus, sourceHash, href, sizeBytes, uploadedAt }) => [
    kind,
    String(hasVirus),
    sourceHash,
    href,
    String(sizeBytes),
    uploadedAt,
  ]);
  const info = jobSeekingInfo && [
    jobSeekingInfo.jobTitle,
    jobSeekingInfo.companyName,
    toText(jobSeekingInfo.timeInRoleMonths),
    String(jobSeekingInfo.isNewToWorkforce),
  ];
  return {
    id: String(id),
    at: row.submittedAt,
    email,
    firstName,
    lastName,
    phone,
    jobSeekerId,
    jobReference,
    attachments,
    info,
  };
}

function toText(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

// biome-ignore lint/suspicious/noExplicitAny: the tests check parsed answers member by member.
type Parsed = any;

function read(one: Parsed, at: (value: string) => number): object {
  const isNil = (value: Parsed) => (typeof value === 'object' ? 'null' : String(value));
  return {
    id: String(one.ID),
    at: at(one.DateSubmitted),
    email: one.Email,
    firstName: one.FirstName,
    lastName: one.LastName,
    phone: one.Phone,
    jobSeekerId: one.JobSeekerID,
    jobReference: one.JobReference ?? null,
    attachments: one.Attachments.map((each: Parsed) => [
      each.Type,
      isNil(each.HasVirus),
      each.Hash,
      each.Href,
      String(each.Size),
      at(each.DateUploaded),
    ]),
    info: one.PrimaryJobSeekingInfo
      ? ['JobTitle', 'CompanyName', 'TimeInRole', 'IsNewToWorkForce'].map((name) =>
          toText(one.PrimaryJobSeekingInfo[name]),
        )
      : null,
  };
}

const fromJson = (one: Parsed) => read(one, (text) => Number(/^\/Date\((-?\d+)\+1000\)\/$/.exec(text)?.[1]));
const fromXml = (one: Parsed) => read({ ...one, Attachments: one.Attachments.Attachment }, Date.parse);
