import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Choices, candidateChoices, choices, describeOptions } from '../../src/dev/sandbox/behaviour/choices.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import type { ApplicationPlan } from '../../src/dev/sandbox/people/plan.ts';
import { get, type PlainAnswer } from '../support/plain-client.ts';

// 30 April 2026, 10:00 at +10:00; Melbourne's daylight saving time ended on 5 April.
const now = Date.UTC(2026, 3, 30);
const list = '/v1/advertiser/applications';
const day = 86_400_000;

const screen = {
  id: '9',
  name: 'Store',
  successful: true,
  questions: [
    { id: '91', type: 'Text', text: 'Notice?', answers: [{ id: '911', text: '4', selected: true }] },
    {
      id: '92',
      type: 'True/False',
      text: 'Licence?',
      answers: [
        { id: '921', text: 'True', selected: true },
        { id: '922', text: 'False', selected: false },
      ],
    },
  ],
};

// Ten applications, ids 1000, 1010 .. 1090, a day apart, the last one today; whole seconds, so that a bound can equal a time exactly.
const plans: ApplicationPlan[] = Array.from({ length: 10 }, (_, index) => ({
  id: BigInt(1000 + index * 10),
  submittedAt: now - (9 - index) * day,
  firstName: 'Zoë',
  jobSeekingInfo: { jobTitle: null, companyName: null, timeInRoleMonths: null, isNewToWorkforce: true },
  screens: [screen],
  attachments: [
    { kind: 'resume', content: `I am number ${index}.`, fileName: 'My_Resume.txt', contentType: 'text/plain' },
    { kind: 'coverLetter', content: 'Hello.', hasVirus: true },
    { kind: 'screen', hasVirus: null },
  ],
}));

// biome-ignore lint/suspicious/noExplicitAny: the tests check parsed answers member by member.
type Parsed = any;

interface Stage {
  readonly sandbox: Sandbox;
  choose(some: Partial<Choices>): void;
  ask(path?: string, headers?: Record<string, string | undefined>): Promise<PlainAnswer>;
  /** The JobApplications object. */
  result(query?: string): Promise<Parsed>;
  ids(query?: string): Promise<number[]>;
  first(query?: string): Promise<Parsed>;
  xml(query?: string): Promise<string>;
  screen(): Promise<Parsed>;
}

async function set(): Promise<Stage & AsyncDisposable> {
  const sandbox = await openSandbox({ applications: 0, now: () => now });
  sandbox.add(plans);
  const ask: Stage['ask'] = (path = list, headers = {}) =>
    get(sandbox.url + path, { authorization: `SWS ${sandbox.credential}`, accept: 'application/json', ...headers });
  const result = async (query = '') => JSON.parse((await ask(`${list}?${query}`)).text).JobApplications;
  return {
    sandbox,
    ask,
    result,
    choose: (some) => sandbox.choose(some),
    ids: async (query) => (await result(query)).JobApplicationsList.map((one: { ID: number }) => one.ID),
    first: async (query) => (await result(query)).JobApplicationsList[0],
    xml: async (query = '') => (await ask(`${list}?${query}`, { accept: 'application/xml' })).text,
    screen: async () => JSON.parse((await ask(`${list}/screen/1000`)).text),
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}

const all = [1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080, 1090];
const resume = `${list}/resume/1000`;

/** Sets every option of a choice, one after the other, and expects the given result. */
async function each<Name extends keyof Choices>(
  stage: Stage,
  name: Name,
  expected: { readonly [Option in Choices[Name] & string]: unknown },
  observe: () => Promise<unknown>,
): Promise<void> {
  expect(new Set(Object.keys(expected))).toEqual(new Set(describeOptions(name)));
  for (const [option, value] of Object.entries(expected)) {
    stage.choose({ [name]: option });
    expect(await observe(), option).toEqual(value);
  }
}

// sandbox-v2-choices.test.ts tests the choices of the candidate side.
type Played = Exclude<keyof Choices, keyof typeof candidateChoices>;
const played = (Object.keys(choices) as (keyof Choices)[]).filter(
  (name): name is Played => !Object.hasOwn(candidateChoices, name),
);

const plays: { readonly [Name in Played]: (stage: Stage) => Promise<void> } = {
  async order(stage) {
    const { ids, choose } = stage;
    expect(await ids()).toEqual(all);
    choose({ order: 'descending' });
    expect(await ids()).toEqual(all.toReversed());
    stage.sandbox.change(1000n, { submittedAt: now + 1000 });
    choose({ order: 'byDate' });
    expect(await ids()).toEqual([...all.slice(1), 1000]);
    choose({ order: 'byDateDescending' });
    expect(await ids()).toEqual([1000, ...all.slice(1).toReversed()]);
    choose({ order: 'random' });
    const random = await ids();
    expect(random).not.toEqual(all);
    expect(new Set(random)).toEqual(new Set(all));
    expect(await ids()).toEqual(random);
    choose({ order: 'perRequest' });
    expect(await ids()).not.toEqual(await ids());
  },
  async pageCap({ ids, choose }) {
    choose({ pageCap: 3 });
    expect(await ids('afterid=1010')).toEqual([1020, 1030, 1040]);
  },
  async pageCapBytes({ ids, ask, choose }) {
    const oneBytes = (await ask(`${list}?beforeid=1010`)).body.length;
    choose({ pageCapBytes: oneBytes * 3 });
    const some = await ids();
    expect(some.length).toBeGreaterThan(1);
    expect(some.length).toBeLessThan(6);
    choose({ pageCapBytes: 1 });
    expect(await ids()).toEqual([1000]);
  },
  async pageCapVaries({ ids, choose }) {
    choose({ pageCap: 9, pageCapVaries: true });
    const lengths = new Set<number>();
    for (let request = 0; request < 20; request += 1) lengths.add((await ids()).length);
    expect(lengths.size).toBeGreaterThan(2);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(9);
  },
  afterIdBound: (stage) =>
    each(stage, 'afterIdBound', { exclusive: [1090], inclusive: [1080, 1090] }, () => stage.ids('afterid=1080')),
  beforeIdBound: (stage) =>
    each(stage, 'beforeIdBound', { exclusive: [1000], inclusive: [1000, 1010] }, () => stage.ids('beforeid=1010')),
  afterDateBound: (stage) =>
    each(stage, 'afterDateBound', { exclusive: [1090], inclusive: [1080, 1090] }, () =>
      stage.ids('afterdate=2026-04-29T10:00:00'),
    ),
  beforeDateBound: (stage) =>
    each(stage, 'beforeDateBound', { exclusive: [1000], inclusive: [1000, 1010] }, () =>
      stage.ids('beforedate=2026-04-22T10:00:00'),
    ),
  combination: (stage) =>
    each(
      stage,
      'combination',
      {
        and: [1020, 1030],
        or: all,
        afterWins: all.slice(2),
        beforeWins: all.slice(0, 4),
        refuse400: 400,
        refuse403: 403,
      },
      async () => {
        const answer = await stage.ask(`${list}?afterid=1010&beforeid=1040`);
        if (answer.status !== 200) return answer.status;
        return JSON.parse(answer.text).JobApplications.JobApplicationsList.map((one: { ID: number }) => one.ID);
      },
    ),
  async ignoredFilters({ ids, choose }) {
    choose({ ignoredFilters: ['beforeid', 'afterdate'] });
    expect(await ids('afterid=1050&beforeid=1070')).toEqual([1060, 1070, 1080, 1090]);
    expect(await ids('afterdate=2026-04-29T10:00:00')).toEqual(all);
    choose({ ignoredFilters: ['afterid', 'beforeid', 'afterdate', 'beforedate'], pageCap: 2 });
    expect(await ids('afterid=1050')).toEqual([1000, 1010]);
  },
  async filtersAfterCap({ ids, choose }) {
    choose({ filtersAfterCap: ['beforeid'], order: 'descending', pageCap: 4 });
    expect(await ids('beforeid=1080')).toEqual([1070, 1060]);
  },
  async defaultWindowDays({ ids, choose }) {
    choose({ defaultWindowDays: 3 });
    expect(await ids('beforeid=2000')).toEqual([1060, 1070, 1080, 1090]);
    expect(await ids('afterid=0')).toEqual(all);
  },
  async withdrawnPerMille({ sandbox, ids, choose, ask }) {
    choose({ withdrawnPerMille: 400, pageCap: 5 });
    const shown = Array.from(sandbox.truth(), (row) => Number(row.id));
    expect(shown.length).toBeLessThan(10);
    expect(await ids()).toEqual(shown.filter((id) => id < 1050));
    const hidden = all.find((id) => !shown.includes(id));
    expect((await ask(`${list}/resume/${hidden}`)).status).toBe(404);
  },
  echo: (stage) => {
    const at = now - day;
    return each(
      stage,
      'echo',
      {
        right: [`/Date(${at}+1000)/`, '7', null, null],
        absent: [undefined, undefined, undefined, undefined],
        null: [null, null, null, null],
        number: [`/Date(${at}+1000)/`, 7, null, null],
        wrong: [`/Date(${at + 3_600_000}+1000)/`, '8', null, null],
        otherZone: [`/Date(${at}+0000)/`, '7', null, null],
        text: ['2026-04-29T10:00:00', '7', null, null],
      },
      async () => {
        const result = await stage.result('afterid=7&afterdate=2026-04-29T10:00:00');
        return [result.AfterDate, result.AfterID, result.BeforeDate, result.BeforeID];
      },
    );
  },
  async empty(stage) {
    const envelope =
      '"AdvertiserID":20000001,"AfterDate":null,"AfterID":"5000","BeforeDate":null,"BeforeID":null,"AgentID":null';
    await each(
      stage,
      'empty',
      {
        list: [200, `{"JobApplications":{${envelope},"JobApplicationsList":[]}}`],
        null: [200, `{"JobApplications":{${envelope},"JobApplicationsList":null}}`],
        missingKey: [200, `{"JobApplications":{${envelope}}}`],
        emptyObject: [200, '{}'],
        nullResult: [200, '{"JobApplications":null}'],
        bareList: [200, '[]'],
        emptyBody: [200, ''],
        noContent: [204, ''],
        notFound: [404, '{"Message":"No applications."}'],
      },
      async () => {
        const answer = await stage.ask(`${list}?afterid=5000`);
        return [answer.status, answer.text];
      },
    );
    const lastBytes = {
      list: '<JobApplicationsList/></JobApplications>',
      null: '<JobApplicationsList i:nil="true"/></JobApplications>',
      missingKey: '<AgentID i:nil="true"/></JobApplications>',
    };
    for (const [option, last] of Object.entries(lastBytes)) {
      stage.choose({ empty: option as Choices['empty'] });
      expect((await stage.xml('afterid=5000')).endsWith(last)).toBe(true);
    }
  },
  topLevel: (stage) =>
    each(
      stage,
      'topLevel',
      {
        wrapped: '{"JobApplications":{"Adv',
        unwrapped: '{"AdvertiserID":20000001',
        bareList: '[{"ID":1000,"DateSubmitt',
      },
      async () => (await stage.ask()).text.slice(0, 24),
    ),
  async single({ result, choose }) {
    choose({ single: 'object' });
    expect((await result('beforeid=1010')).JobApplicationsList).toMatchObject({ ID: 1000 });
    expect((await result()).JobApplicationsList).toHaveLength(10);
  },
  keyCase: (stage) =>
    each(
      stage,
      'keyCase',
      {
        pascal: ['JobApplications', 'AdvertiserID', 'ID', 'JobSeekerID'],
        camel: ['jobApplications', 'advertiserID', 'id', 'jobSeekerID'],
        lower: ['jobapplications', 'advertiserid', 'id', 'jobseekerid'],
        upper: ['JOBAPPLICATIONS', 'ADVERTISERID', 'ID', 'JOBSEEKERID'],
      },
      async () => {
        const [[top, result]] = Object.entries<Parsed>(JSON.parse((await stage.ask()).text)) as [[string, Parsed]];
        const elements = Object.values(result).find(Array.isArray) as object[];
        const keys = Object.keys(elements[0] as object);
        return [top, Object.keys(result)[0], keys[0], keys[6]];
      },
    ),
  async extraMembers({ result, choose }) {
    choose({ extraMembers: true });
    const answer = await result();
    expect(answer.__type).toBe('JobApplications:#Advertiser');
    expect(answer.JobApplicationsList[0]).toMatchObject({
      __type: 'JobApplication:#Advertiser',
      Channel: 'web',
      ID: 1000,
    });
  },
  async dateZone(stage) {
    const { sandbox, ids } = stage;
    // With daylight saving time, 10:30 in Melbourne is 23:30 UTC, and 9:30 at +10:00.
    sandbox.add([{ id: 1n, submittedAt: Date.UTC(2026, 0, 14, 23, 45) }]);
    await each(stage, 'dateZone', { standard: false, melbourne: true, utc: false }, async () =>
      (await ids('afterdate=2026-01-15T10:30:00')).includes(1),
    );
    await each(stage, 'dateZone', { standard: true, melbourne: true, utc: false }, async () =>
      (await ids('afterdate=2026-01-15T09:30:00')).includes(1),
    );
  },
  async invalidFilter(stage) {
    for (const query of ['afterid=abc', 'beforeid=1e3', 'afterdate=2026-02-30T00:00:00', 'beforedate=yesterday']) {
      await each(
        stage,
        'invalidFilter',
        { refuse400: [400, undefined], ignore: [200, 10], empty: [200, 0] },
        async () => {
          const answer = await stage.ask(`${list}?${query}`);
          return [answer.status, JSON.parse(answer.text).JobApplications?.JobApplicationsList.length];
        },
      );
    }
  },
  async dateOffset(stage) {
    const summer = Date.UTC(2026, 0, 1);
    stage.sandbox.add([{ id: 1n, submittedAt: summer }]);
    await each(
      stage,
      'dateOffset',
      {
        standard: `/Date(${summer}+1000)/`,
        melbourne: `/Date(${summer}+1100)/`,
        utc: `/Date(${summer}+0000)/`,
        absent: `/Date(${summer})/`,
        colon: `/Date(${summer}+10:00)/`,
        odd: `/Date(${summer}-0330)/`,
        impossible: `/Date(${summer}+9900)/`,
      },
      async () => (await stage.first()).DateSubmitted,
    );
  },
  dateShape: (stage) =>
    each(
      stage,
      'dateShape',
      {
        milliseconds: `"/Date(${now}+1000)/"`,
        escapedSlashes: `"\\/Date(${now}+1000)\\/"`,
        iso: '"2026-04-30T10:00:00.000+10:00"',
        isoWithoutZone: '"2026-04-30T10:00:00.000"',
        isoSevenDigits: '"2026-04-30T10:00:00.0000000+10:00"',
      },
      async () => /"DateSubmitted":("[^"]+")/.exec((await stage.ask(`${list}?afterid=1080`)).text)?.[1],
    ),
  dateShift: (stage) =>
    each(
      stage,
      'dateShift',
      { instant: `/Date(${now}+1000)/`, shifted: `/Date(${now + 36_000_000}+1000)/` },
      async () => (await stage.first('afterid=1080')).DateSubmitted,
    ),
  async agentId(stage) {
    const { result, choose } = stage;
    await each(
      stage,
      'agentId',
      { null: null, number: 4711, text: 'AGENT-7', changing: expect.any(Number), absent: undefined },
      async () => (await result()).AgentID,
    );
    choose({ agentId: 'changing' });
    expect((await result()).AgentID).not.toBe((await result()).AgentID);
  },
  async idSpacing({ sandbox, choose }) {
    const widest = (option: Choices['idSpacing']) => {
      choose({ idSpacing: option });
      const ids = sandbox.add(50).slice(1);
      return Math.max(...ids.slice(1).map((id, index) => Number(id - (ids[index] as bigint))));
    };
    expect(widest('consecutive')).toBe(1);
    expect(widest('sparse')).toBeGreaterThan(5);
    expect(widest('wide')).toBeGreaterThan(1000);
  },
  idShape: (stage) => each(stage, 'idShape', { number: 1000, text: '1000' }, async () => (await stage.first()).ID),
  async idsAgainstDates({ sandbox, choose, result }) {
    choose({ idsAgainstDates: 'crossed' });
    const dates = Array.from(sandbox.truth(), (row) => row.submittedAt);
    expect(dates).not.toEqual(dates.toSorted((a, b) => a - b));
    const listed = (await result()).JobApplicationsList.map((one: Parsed) => one.DateSubmitted);
    expect(listed).toEqual(dates.map((at) => `/Date(${at}+1000)/`));
  },
  xmlNamespace: (stage) =>
    each(
      stage,
      'xmlNamespace',
      {
        none: '<JobApplications xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><AdvertiserID>',
        default:
          '<JobApplications xmlns="http://schemas.example.com/advertiser/applications" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><AdvertiserID>',
        prefixed:
          '<a:JobApplications xmlns:a="http://schemas.example.com/advertiser/applications" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a:AdvertiserID>',
      },
      async () => /<(?:a:)?JobApplications.*?AdvertiserID>/.exec(await stage.xml())?.[0],
    ),
  xmlNull: (stage) =>
    each(
      stage,
      'xmlNull',
      {
        iNil: '<HasVirus i:nil="true"/>',
        xsiNil: '<HasVirus xsi:nil="true"/>',
        absent: undefined,
        emptyElement: '<HasVirus/>',
      },
      async () => /<HasVirus[^>]*\/>/.exec(await stage.xml())?.[0],
    ),
  xmlOrder: (stage) =>
    each(
      stage,
      'xmlOrder',
      {
        drawn: ['ID', 'DateSubmitted'],
        reversed: ['Attachments', 'Attachment'],
        sorted: ['Attachments', 'Attachment'],
      },
      async () => /<JobApplication><(\w+)>.*?<(\w+)>/.exec(await stage.xml())?.slice(1),
    ),
  xmlDates: (stage) =>
    each(
      stage,
      'xmlDates',
      { iso: '2026-04-30T10:00:00.000+10:00', milliseconds: `/Date(${now}+1000)/` },
      async () => /<DateSubmitted>([^<]+)/.exec(await stage.xml('afterid=1080'))?.[1],
    ),
  acceptMissing: (stage) => each(stage, 'acceptMissing', formats, () => formatOf(stage, undefined)),
  async acceptAny(stage) {
    await each(stage, 'acceptAny', formats, () => formatOf(stage, '*/*'));
    await each(stage, 'acceptAny', formats, () => formatOf(stage, 'application/*'));
  },
  acceptWeights: (stage) =>
    each(stage, 'acceptWeights', { byWeight: 'application/xml', firstNamed: 'application/json', refuse406: 406 }, () =>
      formatOf(stage, 'application/json;q=0.2, application/xml;q=0.9'),
    ),
  acceptOther: (stage) => each(stage, 'acceptOther', formats, () => formatOf(stage, 'text/html')),
  formatHonoured: (stage) =>
    each(stage, 'formatHonoured', { asked: 'application/json', opposite: 'application/xml' }, () =>
      formatOf(stage, 'application/json'),
    ),
  includeUnknown: (stage) =>
    each(stage, 'includeUnknown', { ignore: [200, false], refuse400: [400, false], include: [200, true] }, async () => {
      const answer = await stage.ask(`${list}?include=everything`);
      return [answer.status, answer.text.includes('PrimaryJobSeekingInfo')];
    }),
  includeHonoured: (stage) =>
    each(stage, 'includeHonoured', { asked: [false, true], always: [true, true], never: [false, false] }, async () => {
      const has = async (query: string) => 'PrimaryJobSeekingInfo' in (await stage.first(query));
      return [await has(''), await has('include=primaryjobseekinginfo')];
    }),
  unsupplied: (stage) =>
    each(
      stage,
      'unsupplied',
      {
        absent: { IsNewToWorkForce: true },
        null: { JobTitle: null, CompanyName: null, TimeInRole: null, IsNewToWorkForce: true },
        empty: { JobTitle: '', CompanyName: '', TimeInRole: '', IsNewToWorkForce: true },
      },
      async () => (await stage.first('include=primaryjobseekinginfo')).PrimaryJobSeekingInfo,
    ),
  charset: (stage) =>
    each(
      stage,
      'charset',
      {
        utf8: ['application/json; charset=utf-8', '7b224a', true],
        unlabelled: ['application/json', '7b224a', true],
        mislabelled: ['application/json; charset=iso-8859-1', '7b224a', true],
        utf8WithMark: ['application/json; charset=utf-8', 'efbbbf', true],
        utf16: ['application/json; charset=utf-16', 'fffe7b', false],
      },
      async () => {
        const { headers, body, text } = await stage.ask();
        return [headers['content-type'], body.subarray(0, 3).toString('hex'), text.includes('Zoë')];
      },
    ),
  async hash(stage) {
    const bytes = 'I am number 0.';
    const md5 = hash('md5', bytes);
    await each(
      stage,
      'hash',
      {
        md5,
        sha1: hash('sha1', bytes),
        sha256: hash('sha256', bytes),
        upperCase: md5.toUpperCase(),
        null: null,
        absent: undefined,
        empty: '',
        constant: '0'.repeat(32),
        volatile: expect.stringMatching(/^[0-9a-f]{32}$/),
        colliding: md5.slice(0, 1),
        long: expect.stringMatching(/^[0-9a-f]{4032}$/),
      },
      async () => (await stage.first()).Attachments[0].Hash,
    );
    stage.choose({ hash: 'volatile' });
    expect((await stage.first()).Attachments[0].Hash).not.toBe((await stage.first()).Attachments[0].Hash);
  },
  size: (stage) =>
    each(
      stage,
      'size',
      { true: 14, null: null, absent: undefined, offByThree: 17, zero: 0, negative: -1, text: '14' },
      async () => (await stage.first()).Attachments[0].Size,
    ),
  async screenSize(stage) {
    const sizes = {
      json: (await stage.ask(`${list}/screen/1000`)).body.length,
      xml: (await stage.ask(`${list}/screen/1000`, { accept: 'application/xml' })).body.length,
    };
    expect(sizes.json).not.toBe(sizes.xml);
    await each(stage, 'screenSize', sizes, async () => (await stage.first()).Attachments[2].Size);
  },
  virusFlag: (stage) =>
    each(
      stage,
      'virusFlag',
      { boolean: [false, true], text: ['False', 'True'], number: [0, 1], absent: [undefined, undefined] },
      async () => (await stage.first()).Attachments.slice(0, 2).map((one: Parsed) => one.HasVirus),
    ),
  virusUnknown: (stage) =>
    each(
      stage,
      'virusUnknown',
      { null: null, absent: undefined, emptyText: '' },
      async () => (await stage.first()).Attachments[2].HasVirus,
    ),
  virusBody: (stage) =>
    each(
      stage,
      'virusBody',
      { empty: [200, '', 0], bytes: [200, 'Hello.', 6], notFound: [404, expect.any(String), 0] },
      async () => {
        const answer = await stage.ask(`${list}/coverletter/1000`);
        return [answer.status, answer.text, (await stage.first()).Attachments[1].Size];
      },
    ),
  href: (stage) => {
    const path = 'advertiser/applications/coverletter/1000';
    return each(
      stage,
      'href',
      {
        relative: path,
        typed: 'advertiser/applications/coverLetter/1000',
        absolute: `${stage.sandbox.url}/v1/${path}`,
        foreign: `https://files.example.net/${path}`,
        protocolRelative: `//files.example.net/${path}`,
        backslashes: `\\\\files.example.net\\${path}`,
        tab: `/\t/files.example.net/${path}`,
        parent: `../../${path}`,
        upperCase: path.toUpperCase(),
        versioned: `/v1/${path}`,
        rooted: `/${path}`,
        missing: undefined,
        null: null,
        otherId: 'advertiser/applications/coverletter/1001',
        signed: expect.stringMatching(/\/coverletter\/1000\?signature=[\w-]{36}$/),
      },
      async () => (await stage.first()).Attachments[1].Href,
    );
  },
  typeCase: (stage) =>
    each(
      stage,
      'typeCase',
      { drawn: 'coverLetter', lower: 'coverletter', upper: 'COVERLETTER', pascal: 'CoverLetter' },
      async () => (await stage.first()).Attachments[1].Type,
    ),
  pathCase: (stage) =>
    each(
      stage,
      'pathCase',
      { exact: 404, any: 200 },
      async () => (await stage.ask('/v1/Advertiser/Applications/CoverLetter/1000')).status,
    ),
  async disposition(stage) {
    await each(
      stage,
      'disposition',
      {
        plain: 'attachment; filename=My_Resume.txt',
        quoted: 'attachment; filename="My Resume.txt"',
        spaces: 'attachment; filename=My Resume.txt',
        extended: "attachment; filename*=UTF-8''Lebenslauf%20Zo%C3%AB%20%E2%80%93%20My%20Resume.txt",
        both: expect.stringMatching(/^attachment; filename="My Resume.txt"; filename\*=UTF-8''Leb/),
        rawUtf8: 'attachment; filename="Lebenslauf Zoë – My Resume.txt"',
        traversal: 'attachment; filename="../../etc/My Resume.txt"',
        nul: "attachment; filename*=UTF-8''resume%00.pdf",
        long: expect.stringMatching(/.{300}/),
        missing: undefined,
      },
      async () => {
        const header = (await stage.ask(resume)).headers['content-disposition'];
        return header === undefined ? undefined : Buffer.from(header, 'latin1').toString();
      },
    );
  },
  fileType: (stage) =>
    each(
      stage,
      'fileType',
      { uploaded: 'text/plain', octetStream: 'application/octet-stream', missing: undefined },
      async () => (await stage.ask(resume)).headers['content-type'],
    ),
  framing: (stage) =>
    each(
      stage,
      'framing',
      { chunked: ['chunked', undefined], contentLength: [undefined, '14'], closeDelimited: [undefined, undefined] },
      async () => {
        const { headers, text, complete } = await stage.ask(resume, { connection: 'keep-alive' });
        expect([text, complete]).toEqual(['I am number 0.', true]);
        return [headers['transfer-encoding'], headers['content-length']];
      },
    ),
  async fileMissing(stage) {
    for (const path of [`${list}/selectioncriteria/1000`, `${list}/resume/1`]) {
      await each(
        stage,
        'fileMissing',
        { notFound: 404, noContent: 204, emptyBody: 200, gone: 410, refuse400: 400, fail500: 500 },
        async () => (await stage.ask(path)).status,
      );
    }
  },
  screenShape: (stage) =>
    each(
      stage,
      'screenShape',
      {
        object: { screen: expect.objectContaining({ '@id': '9' }) },
        array: { screen: [expect.objectContaining({ '@id': '9' })] },
        null: { screen: null },
        absent: {},
        unwrapped: expect.objectContaining({ '@id': '9' }),
      },
      stage.screen,
    ),
  async screenExtras({ screen: draw, choose }) {
    choose({ screenExtras: true });
    expect(await draw()).toMatchObject({
      '?xml': { '@version': '1.0' },
      screen: { '@xmlns': 'http://schemas.example.com/screen' },
    });
  },
  async questionShape(stage) {
    stage.sandbox.change(1000n, { screens: [{ ...screen, questions: screen.questions.slice(0, 1) }] });
    const question = expect.objectContaining({ '@id': '91' });
    await each(
      stage,
      'questionShape',
      { array: [question], objectWhenOne: question, null: null, absent: undefined },
      async () => (await stage.screen()).screen.question,
    );
  },
  answerShape: (stage) => {
    const text = { '@id': '911', '@selected': 'True', '#text': '4' };
    const both = [
      { '@id': '921', '@selected': 'True', '#text': 'True' },
      { '@id': '922', '#text': 'False' },
    ];
    return each(
      stage,
      'answerShape',
      {
        drawn: [text, both],
        arrays: [[text], both],
        objectsWhenOne: [text, both],
        strings: [['4'], ['True', 'False']],
        null: [null, null],
        absent: [undefined, undefined],
      },
      async () => (await stage.screen()).screen.question.map((one: Parsed) => one.answer),
    );
  },
  async answerText(stage) {
    const base = { '@id': '911', '@selected': 'True' };
    await each(
      stage,
      'answerText',
      {
        text: { ...base, '#text': '4' },
        number: { ...base, '#text': 4 },
        list: { ...base, '#text': ['4'] },
        cdata: { ...base, '#cdata-section': '4' },
        absent: base,
      },
      async () => (await stage.screen()).screen.question[0].answer,
    );
    stage.choose({ answerText: 'cdata' });
    expect((await stage.ask(`${list}/screen/1000`, { accept: 'application/xml' })).text).toContain('<![CDATA[4]]>');
  },
  successful: (stage) =>
    each(
      stage,
      'successful',
      { drawn: 'True', lower: 'true', empty: '', absent: undefined, pass: 'Pass' },
      async () => (await stage.screen()).screen['@successful'],
    ),
  selected: (stage) =>
    each(
      stage,
      'selected',
      {
        drawn: ['True', undefined],
        lower: ['true', undefined],
        falseToo: ['True', 'False'],
        absent: [undefined, undefined],
      },
      async () => (await stage.screen()).screen.question[1].answer.map((one: Parsed) => one['@selected']),
    ),
  async screenMissing(stage) {
    stage.sandbox.change(1000n, { screens: [] });
    await each(
      stage,
      'screenMissing',
      {
        notFound: [404, '{"Message":"There is no screen."}'],
        noContent: [204, ''],
        emptyBody: [200, ''],
        emptyScreen: [200, '{"screen":[]}'],
      },
      async () => {
        const answer = await stage.ask(`${list}/screen/1000`);
        return [answer.status, answer.text];
      },
    );
  },
  errorBody: (stage) =>
    each(
      stage,
      'errorBody',
      {
        json: ['application/json; charset=utf-8', expect.stringMatching(/^\{"Message":/)],
        xml: ['application/xml; charset=utf-8', expect.stringMatching(/<Error><Message>/)],
        html: ['text/html; charset=utf-8', expect.stringMatching(/^<!DOCTYPE html>/)],
        text: ['text/plain; charset=utf-8', 'There is no such attachment.'],
        empty: [undefined, ''],
      },
      async () => {
        const { status, headers, text } = await stage.ask(`${list}/resume/1`);
        expect(status).toBe(404);
        return [headers['content-type'], text];
      },
    ),
  async unknownPath(stage) {
    for (const path of [
      '/v1/advertiser/nothing',
      `${list}/photo/1000`,
      `${list}/resume/`,
      `${list}/resume/abc`,
      '/v1',
    ]) {
      await each(
        stage,
        'unknownPath',
        { notFound: 404, html200: 200, refuse405: 405 },
        async () => (await stage.ask(path)).status,
      );
    }
  },
  credentialRefused: (stage) =>
    each(
      stage,
      'credentialRefused',
      { 401: 401, 403: 403, 404: 404, redirect: 302 },
      async () => (await stage.ask(list, { authorization: 'SWS wrong' })).status,
    ),
  async ratePerSecond({ ask, choose }) {
    choose({ ratePerSecond: 2 });
    expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([200, 200, 429]);
  },
  retryAfter: (stage) => {
    stage.choose({ ratePerSecond: 1 });
    const forms = {
      seconds: '1',
      date: new Date(now + 1000).toUTCString(),
      absent: undefined,
      zero: '0',
      negative: '-5',
      day: '86400',
    };
    return each(stage, 'retryAfter', forms, async () => {
      await stage.ask();
      return (await stage.ask()).headers['retry-after'];
    });
  },
  async removedFile(stage) {
    stage.sandbox.remove(1000n);
    expect(await stage.ids()).toEqual(all.slice(1));
    await each(
      stage,
      'removedFile',
      { notFound: 404, gone: 410, kept: 200 },
      async () => (await stage.ask(resume)).status,
    );
  },
  sunset: (stage) =>
    each(
      stage,
      'sunset',
      { none: [200, undefined], header: [200, 'Wed, 31 Dec 2031 23:59:59 GMT'], gone: [410, undefined] },
      async () => {
        const { status, headers } = await stage.ask();
        return [status, headers.sunset];
      },
    ),
};

const formats = { json: 'application/json', xml: 'application/xml', refuse406: 406 };

async function formatOf(stage: Stage, accept: string | undefined): Promise<unknown> {
  const { status, headers } = await stage.ask(list, { accept });
  return status === 200 ? headers['content-type']?.split(';')[0] : status;
}

test.each(played)('%s is played as chosen', async (name) => {
  await using stage = await set();
  await plays[name](stage);
});

test('a choice that does not exist, or an option that does not, is refused and nothing changes', async () => {
  await using stage = await set();
  expect(() => stage.choose({ order: 'sideways' } as never)).toThrow(/order/);
  expect(() => stage.choose({ ordre: 'ascending' } as never)).toThrow(/ordre/);
  expect(stage.sandbox.choices.order).toBe('ascending');
});
