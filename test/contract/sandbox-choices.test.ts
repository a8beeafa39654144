import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Choices, candidateChoices } from '../../src/dev/sandbox/behaviour/choices.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import type { ApplicationPlan } from '../../src/dev/sandbox/people/plan.ts';
import { type Plays, testPlays } from '../support/choice-plays.ts';
import { get } from '../support/servers/plain-client.ts';

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

type Stage = Awaited<ReturnType<typeof set>>;

async function set() {
  const sandbox = await openSandbox({ applications: 0, now: () => now });
  sandbox.add(plans);
  const ask = (path = list, headers: Record<string, string | undefined> = {}) =>
    get(sandbox.url + path, { authorization: `SWS ${sandbox.credential}`, accept: 'application/json', ...headers });
  /** The JobApplications object. */
  const result = async (query = ''): Promise<Parsed> =>
    JSON.parse((await ask(`${list}?${query}`)).text).JobApplications;
  return {
    sandbox,
    ask,
    result,
    choose: (some: Partial<Choices>) => sandbox.choose(some),
    ids: async (query?: string): Promise<number[]> =>
      (await result(query)).JobApplicationsList.map((one: { ID: number }) => one.ID),
    first: async (query?: string) => (await result(query)).JobApplicationsList[0],
    xml: async (query = '') => (await ask(`${list}?${query}`, { accept: 'application/xml' })).text,
    screen: async (): Promise<Parsed> => JSON.parse((await ask(`${list}/screen/1000`)).text),
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}

const all = [1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080, 1090];
const resume = `${list}/resume/1000`;
const bytes = 'I am number 0.';
const md5 = hash('md5', bytes);
const letter = 'advertiser/applications/coverletter/1000';
const question = expect.objectContaining({ '@id': '91' });
const text = { '@id': '911', '@selected': 'True', '#text': '4' };
const both = [
  { '@id': '921', '@selected': 'True', '#text': 'True' },
  { '@id': '922', '#text': 'False' },
];
const yesterday = now - day;
const summer = Date.UTC(2026, 0, 1);
const formats = { json: 'application/json', xml: 'application/xml', refuse406: 406 };
const envelope =
  '"AdvertiserID":20000001,"AfterDate":null,"AfterID":"5000","BeforeDate":null,"BeforeID":null,"AgentID":null';

// sandbox-v2-choices.test.ts tests the choices of the candidate side.
const plays: Plays<Stage, Exclude<keyof Choices, keyof typeof candidateChoices>> = {
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
  afterIdBound: { shows: { exclusive: [1090], inclusive: [1080, 1090] }, seen: (stage) => stage.ids('afterid=1080') },
  beforeIdBound: { shows: { exclusive: [1000], inclusive: [1000, 1010] }, seen: (stage) => stage.ids('beforeid=1010') },
  afterDateBound: {
    shows: { exclusive: [1090], inclusive: [1080, 1090] },
    seen: (stage) => stage.ids('afterdate=2026-04-29T10:00:00'),
  },
  beforeDateBound: {
    shows: { exclusive: [1000], inclusive: [1000, 1010] },
    seen: (stage) => stage.ids('beforedate=2026-04-22T10:00:00'),
  },
  combination: {
    shows: {
      and: [1020, 1030],
      or: all,
      afterWins: all.slice(2),
      beforeWins: all.slice(0, 4),
      refuse400: 400,
      refuse403: 403,
    },
    seen: async (stage) => {
      const answer = await stage.ask(`${list}?afterid=1010&beforeid=1040`);
      if (answer.status !== 200) return answer.status;
      return JSON.parse(answer.text).JobApplications.JobApplicationsList.map((one: { ID: number }) => one.ID);
    },
  },
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
  echo: {
    shows: {
      right: [`/Date(${yesterday}+1000)/`, '7', null, null],
      absent: [undefined, undefined, undefined, undefined],
      null: [null, null, null, null],
      number: [`/Date(${yesterday}+1000)/`, 7, null, null],
      wrong: [`/Date(${yesterday + 3_600_000}+1000)/`, '8', null, null],
      otherZone: [`/Date(${yesterday}+0000)/`, '7', null, null],
      text: ['2026-04-29T10:00:00', '7', null, null],
    },
    seen: async (stage) => {
      const result = await stage.result('afterid=7&afterdate=2026-04-29T10:00:00');
      return [result.AfterDate, result.AfterID, result.BeforeDate, result.BeforeID];
    },
  },
  empty: [
    {
      shows: {
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
      seen: async (stage) => {
        const answer = await stage.ask(`${list}?afterid=5000`);
        return [answer.status, answer.text];
      },
    },
    async (stage) => {
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
  ],
  topLevel: {
    shows: {
      wrapped: '{"JobApplications":{"Adv',
      unwrapped: '{"AdvertiserID":20000001',
      bareList: '[{"ID":1000,"DateSubmitt',
    },
    seen: async (stage) => (await stage.ask()).text.slice(0, 24),
  },
  async single({ result, choose }) {
    choose({ single: 'object' });
    expect((await result('beforeid=1010')).JobApplicationsList).toMatchObject({ ID: 1000 });
    expect((await result()).JobApplicationsList).toHaveLength(10);
  },
  keyCase: {
    shows: {
      pascal: ['JobApplications', 'AdvertiserID', 'ID', 'JobSeekerID'],
      camel: ['jobApplications', 'advertiserID', 'id', 'jobSeekerID'],
      lower: ['jobapplications', 'advertiserid', 'id', 'jobseekerid'],
      upper: ['JOBAPPLICATIONS', 'ADVERTISERID', 'ID', 'JOBSEEKERID'],
    },
    seen: async (stage) => {
      const [[top, result]] = Object.entries<Parsed>(JSON.parse((await stage.ask()).text)) as [[string, Parsed]];
      const elements = Object.values(result).find(Array.isArray) as object[];
      const keys = Object.keys(elements[0] as object);
      return [top, Object.keys(result)[0], keys[0], keys[6]];
    },
  },
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
  dateZone: [
    // With daylight saving time, 10:30 in Melbourne is 23:30 UTC, and 9:30 at +10:00.
    ({ sandbox }) => sandbox.add([{ id: 1n, submittedAt: Date.UTC(2026, 0, 14, 23, 45) }]),
    {
      shows: { standard: false, melbourne: true, utc: false },
      seen: async ({ ids }) => (await ids('afterdate=2026-01-15T10:30:00')).includes(1),
    },
    {
      shows: { standard: true, melbourne: true, utc: false },
      seen: async ({ ids }) => (await ids('afterdate=2026-01-15T09:30:00')).includes(1),
    },
  ],
  invalidFilter: ['afterid=abc', 'beforeid=1e3', 'afterdate=2026-02-30T00:00:00', 'beforedate=yesterday'].map(
    (query) => ({
      shows: { refuse400: [400, undefined], ignore: [200, 10], empty: [200, 0] },
      seen: async (stage) => {
        const answer = await stage.ask(`${list}?${query}`);
        return [answer.status, JSON.parse(answer.text).JobApplications?.JobApplicationsList.length];
      },
    }),
  ),
  dateOffset: [
    ({ sandbox }) => sandbox.add([{ id: 1n, submittedAt: summer }]),
    {
      shows: {
        standard: `/Date(${summer}+1000)/`,
        melbourne: `/Date(${summer}+1100)/`,
        utc: `/Date(${summer}+0000)/`,
        absent: `/Date(${summer})/`,
        colon: `/Date(${summer}+10:00)/`,
        odd: `/Date(${summer}-0330)/`,
        impossible: `/Date(${summer}+9900)/`,
      },
      seen: async (stage) => (await stage.first()).DateSubmitted,
    },
  ],
  dateShape: {
    shows: {
      milliseconds: `"/Date(${now}+1000)/"`,
      escapedSlashes: `"\\/Date(${now}+1000)\\/"`,
      iso: '"2026-04-30T10:00:00.000+10:00"',
      isoWithoutZone: '"2026-04-30T10:00:00.000"',
      isoSevenDigits: '"2026-04-30T10:00:00.0000000+10:00"',
    },
    seen: async (stage) => /"DateSubmitted":("[^"]+")/.exec((await stage.ask(`${list}?afterid=1080`)).text)?.[1],
  },
  dateShift: {
    shows: { instant: `/Date(${now}+1000)/`, shifted: `/Date(${now + 36_000_000}+1000)/` },
    seen: async (stage) => (await stage.first('afterid=1080')).DateSubmitted,
  },
  agentId: [
    {
      shows: { null: null, number: 4711, text: 'AGENT-7', changing: expect.any(Number), absent: undefined },
      seen: async (stage) => (await stage.result()).AgentID,
    },
    async ({ choose, result }) => {
      choose({ agentId: 'changing' });
      expect((await result()).AgentID).not.toBe((await result()).AgentID);
    },
  ],
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
  idShape: { shows: { number: 1000, text: '1000' }, seen: async (stage) => (await stage.first()).ID },
  async idsAgainstDates({ sandbox, choose, result }) {
    choose({ idsAgainstDates: 'crossed' });
    const dates = Array.from(sandbox.truth(), (row) => row.submittedAt);
    expect(dates).not.toEqual(dates.toSorted((a, b) => a - b));
    const listed = (await result()).JobApplicationsList.map((one: Parsed) => one.DateSubmitted);
    expect(listed).toEqual(dates.map((at) => `/Date(${at}+1000)/`));
  },
  xmlNamespace: {
    shows: {
      none: '<JobApplications xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><AdvertiserID>',
      default:
        '<JobApplications xmlns="http://schemas.example.com/advertiser/applications" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><AdvertiserID>',
      prefixed:
        '<a:JobApplications xmlns:a="http://schemas.example.com/advertiser/applications" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a:AdvertiserID>',
    },
    seen: async (stage) => /<(?:a:)?JobApplications.*?AdvertiserID>/.exec(await stage.xml())?.[0],
  },
  xmlNull: {
    shows: {
      iNil: '<HasVirus i:nil="true"/>',
      xsiNil: '<HasVirus xsi:nil="true"/>',
      absent: undefined,
      emptyElement: '<HasVirus/>',
    },
    seen: async (stage) => /<HasVirus[^>]*\/>/.exec(await stage.xml())?.[0],
  },
  xmlOrder: {
    shows: {
      drawn: ['ID', 'DateSubmitted'],
      reversed: ['Attachments', 'Attachment'],
      sorted: ['Attachments', 'Attachment'],
    },
    seen: async (stage) => /<JobApplication><(\w+)>.*?<(\w+)>/.exec(await stage.xml())?.slice(1),
  },
  xmlDates: {
    shows: { iso: '2026-04-30T10:00:00.000+10:00', milliseconds: `/Date(${now}+1000)/` },
    seen: async (stage) => /<DateSubmitted>([^<]+)/.exec(await stage.xml('afterid=1080'))?.[1],
  },
  acceptUnclear: [undefined, '*/*', 'text/html', 'application/json, application/xml'].map((accept) => ({
    shows: formats,
    seen: (stage) => formatOf(stage, accept),
  })),
  formatHonoured: {
    shows: { asked: 'application/json', opposite: 'application/xml' },
    seen: (stage) => formatOf(stage, 'application/json'),
  },
  includeUnknown: {
    shows: { ignore: [200, false], refuse400: [400, false], include: [200, true] },
    seen: async (stage) => {
      const answer = await stage.ask(`${list}?include=everything`);
      return [answer.status, answer.text.includes('PrimaryJobSeekingInfo')];
    },
  },
  includeHonoured: {
    shows: { asked: [false, true], always: [true, true], never: [false, false] },
    seen: async (stage) => {
      const has = async (query: string) => 'PrimaryJobSeekingInfo' in (await stage.first(query));
      return [await has(''), await has('include=primaryjobseekinginfo')];
    },
  },
  unsupplied: {
    shows: {
      absent: { IsNewToWorkForce: true },
      null: { JobTitle: null, CompanyName: null, TimeInRole: null, IsNewToWorkForce: true },
      empty: { JobTitle: '', CompanyName: '', TimeInRole: '', IsNewToWorkForce: true },
    },
    seen: async (stage) => (await stage.first('include=primaryjobseekinginfo')).PrimaryJobSeekingInfo,
  },
  charset: {
    shows: {
      utf8: ['application/json; charset=utf-8', '7b224a', true],
      unlabelled: ['application/json', '7b224a', true],
      mislabelled: ['application/json; charset=iso-8859-1', '7b224a', true],
      utf8WithMark: ['application/json; charset=utf-8', 'efbbbf', true],
      utf16: ['application/json; charset=utf-16', 'fffe7b', false],
    },
    seen: async (stage) => {
      const { headers, body, text } = await stage.ask();
      return [headers['content-type'], body.subarray(0, 3).toString('hex'), text.includes('Zoë')];
    },
  },
  hash: [
    {
      shows: {
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
      seen: async (stage) => (await stage.first()).Attachments[0].Hash,
    },
    async (stage) => {
      stage.choose({ hash: 'volatile' });
      expect((await stage.first()).Attachments[0].Hash).not.toBe((await stage.first()).Attachments[0].Hash);
    },
  ],
  size: {
    shows: { true: 14, null: null, absent: undefined, offByThree: 17, zero: 0, negative: -1, text: '14' },
    seen: async (stage) => (await stage.first()).Attachments[0].Size,
  },
  async screenSize({ ask, choose, first }) {
    const sizeOf = async (accept: string) => (await ask(`${list}/screen/1000`, { accept })).body.length;
    const sizes = { json: await sizeOf('application/json'), xml: await sizeOf('application/xml') };
    expect(sizes.json).not.toBe(sizes.xml);
    for (const screenSize of ['json', 'xml'] as const) {
      choose({ screenSize });
      expect((await first()).Attachments[2].Size, screenSize).toBe(sizes[screenSize]);
    }
  },
  virusFlag: {
    shows: { boolean: [false, true], text: ['False', 'True'], number: [0, 1], absent: [undefined, undefined] },
    seen: async (stage) => (await stage.first()).Attachments.slice(0, 2).map((one: Parsed) => one.HasVirus),
  },
  virusUnknown: {
    shows: { null: null, absent: undefined, emptyText: '' },
    seen: async (stage) => (await stage.first()).Attachments[2].HasVirus,
  },
  virusBody: {
    shows: { empty: [200, '', 0], bytes: [200, 'Hello.', 6], notFound: [404, expect.any(String), 0] },
    seen: async (stage) => {
      const answer = await stage.ask(`${list}/coverletter/1000`);
      return [answer.status, answer.text, (await stage.first()).Attachments[1].Size];
    },
  },
  href: {
    shows: ({ sandbox }) => ({
      relative: letter,
      typed: 'advertiser/applications/coverLetter/1000',
      absolute: `${sandbox.url}/v1/${letter}`,
      foreign: `https://files.example.net/${letter}`,
      protocolRelative: `//files.example.net/${letter}`,
      backslashes: `\\\\files.example.net\\${letter}`,
      tab: `/\t/files.example.net/${letter}`,
      parent: `../../${letter}`,
      upperCase: letter.toUpperCase(),
      versioned: `/v1/${letter}`,
      rooted: `/${letter}`,
      missing: undefined,
      null: null,
      otherId: 'advertiser/applications/coverletter/1001',
      signed: expect.stringMatching(/\/coverletter\/1000\?signature=[\w-]{36}$/),
    }),
    seen: async (stage) => (await stage.first()).Attachments[1].Href,
  },
  typeCase: {
    shows: { drawn: 'coverLetter', lower: 'coverletter', upper: 'COVERLETTER', pascal: 'CoverLetter' },
    seen: async (stage) => (await stage.first()).Attachments[1].Type,
  },
  pathCase: {
    shows: { exact: 404, any: 200 },
    seen: async (stage) => (await stage.ask('/v1/Advertiser/Applications/CoverLetter/1000')).status,
  },
  disposition: {
    shows: {
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
    seen: async (stage) => {
      const header = (await stage.ask(resume)).headers['content-disposition'];
      return header === undefined ? undefined : Buffer.from(header, 'latin1').toString();
    },
  },
  fileType: {
    shows: { uploaded: 'text/plain', octetStream: 'application/octet-stream', missing: undefined },
    seen: async (stage) => (await stage.ask(resume)).headers['content-type'],
  },
  framing: {
    shows: {
      chunked: ['chunked', undefined],
      contentLength: [undefined, '14'],
      closeDelimited: [undefined, undefined],
    },
    seen: async (stage) => {
      const { headers, text, complete } = await stage.ask(resume, { connection: 'keep-alive' });
      expect([text, complete]).toEqual(['I am number 0.', true]);
      return [headers['transfer-encoding'], headers['content-length']];
    },
  },
  fileMissing: [`${list}/selectioncriteria/1000`, `${list}/resume/1`].map((path) => ({
    shows: { notFound: 404, noContent: 204, emptyBody: 200, gone: 410, refuse400: 400, fail500: 500 },
    seen: async (stage) => (await stage.ask(path)).status,
  })),
  screenShape: {
    shows: {
      object: { screen: expect.objectContaining({ '@id': '9' }) },
      array: { screen: [expect.objectContaining({ '@id': '9' })] },
      null: { screen: null },
      absent: {},
      unwrapped: expect.objectContaining({ '@id': '9' }),
    },
    seen: (stage) => stage.screen(),
  },
  async screenExtras({ screen: draw, choose }) {
    choose({ screenExtras: true });
    expect(await draw()).toMatchObject({
      '?xml': { '@version': '1.0' },
      screen: { '@xmlns': 'http://schemas.example.com/screen' },
    });
  },
  questionShape: [
    ({ sandbox }) => sandbox.change(1000n, { screens: [{ ...screen, questions: screen.questions.slice(0, 1) }] }),
    {
      shows: { array: [question], objectWhenOne: question, null: null, absent: undefined },
      seen: async (stage) => (await stage.screen()).screen.question,
    },
  ],
  answerShape: {
    shows: {
      drawn: [text, both],
      arrays: [[text], both],
      objectsWhenOne: [text, both],
      strings: [['4'], ['True', 'False']],
      null: [null, null],
      absent: [undefined, undefined],
    },
    seen: async (stage) => (await stage.screen()).screen.question.map((one: Parsed) => one.answer),
  },
  answerText: [
    {
      shows: {
        text,
        number: { ...text, '#text': 4 },
        list: { ...text, '#text': ['4'] },
        cdata: { '@id': '911', '@selected': 'True', '#cdata-section': '4' },
        absent: { '@id': '911', '@selected': 'True' },
      },
      seen: async (stage) => (await stage.screen()).screen.question[0].answer,
    },
    async ({ ask, choose }) => {
      choose({ answerText: 'cdata' });
      expect((await ask(`${list}/screen/1000`, { accept: 'application/xml' })).text).toContain('<![CDATA[4]]>');
    },
  ],
  successful: {
    shows: { drawn: 'True', lower: 'true', empty: '', absent: undefined, pass: 'Pass' },
    seen: async (stage) => (await stage.screen()).screen['@successful'],
  },
  selected: {
    shows: {
      drawn: ['True', undefined],
      lower: ['true', undefined],
      falseToo: ['True', 'False'],
      absent: [undefined, undefined],
    },
    seen: async (stage) => (await stage.screen()).screen.question[1].answer.map((one: Parsed) => one['@selected']),
  },
  screenMissing: [
    (stage) => stage.sandbox.change(1000n, { screens: [] }),
    {
      shows: {
        notFound: [404, '{"Message":"There is no screen."}'],
        noContent: [204, ''],
        emptyBody: [200, ''],
        emptyScreen: [200, '{"screen":[]}'],
      },
      seen: async (stage) => {
        const answer = await stage.ask(`${list}/screen/1000`);
        return [answer.status, answer.text];
      },
    },
  ],
  errorBody: {
    shows: {
      json: ['application/json; charset=utf-8', expect.stringMatching(/^\{"Message":/)],
      xml: ['application/xml; charset=utf-8', expect.stringMatching(/<Error><Message>/)],
      html: ['text/html; charset=utf-8', expect.stringMatching(/^<!DOCTYPE html>/)],
      text: ['text/plain; charset=utf-8', 'There is no such attachment.'],
      empty: [undefined, ''],
    },
    seen: async (stage) => {
      const { status, headers, text } = await stage.ask(`${list}/resume/1`);
      expect(status).toBe(404);
      return [headers['content-type'], text];
    },
  },
  unknownPath: ['/v1/advertiser/nothing', `${list}/photo/1000`, `${list}/resume/`, `${list}/resume/abc`, '/v1'].map(
    (path) => ({
      shows: { notFound: 404, html200: 200, refuse405: 405 },
      seen: async (stage) => (await stage.ask(path)).status,
    }),
  ),
  credentialRefused: {
    shows: { 401: 401, 403: 403, 404: 404, redirect: 302 },
    seen: async (stage) => (await stage.ask(list, { authorization: 'SWS wrong' })).status,
  },
  async ratePerSecond({ ask, choose }) {
    choose({ ratePerSecond: 2 });
    expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([200, 200, 429]);
  },
  retryAfter: [
    ({ choose }) => choose({ ratePerSecond: 1 }),
    {
      shows: {
        seconds: '1',
        date: new Date(now + 1000).toUTCString(),
        absent: undefined,
        zero: '0',
        negative: '-5',
        day: '86400',
      },
      seen: async ({ ask }) => {
        await ask();
        return (await ask()).headers['retry-after'];
      },
    },
  ],
  removedFile: [
    async (stage) => {
      stage.sandbox.remove(1000n);
      expect(await stage.ids()).toEqual(all.slice(1));
    },
    { shows: { notFound: 404, gone: 410, kept: 200 }, seen: async (stage) => (await stage.ask(resume)).status },
  ],
  sunset: {
    shows: { none: [200, undefined], header: [200, 'Wed, 31 Dec 2031 23:59:59 GMT'], gone: [410, undefined] },
    seen: async (stage) => {
      const { status, headers } = await stage.ask();
      return [status, headers.sunset];
    },
  },
};

async function formatOf(stage: Stage, accept: string | undefined): Promise<unknown> {
  const { status, headers } = await stage.ask(list, { accept });
  return status === 200 ? headers['content-type']?.split(';')[0] : status;
}

testPlays(plays, set);

test('a choice that does not exist, or an option that does not, is refused and nothing changes', async () => {
  await using stage = await set();
  expect(() => stage.choose({ order: 'sideways' } as never)).toThrow(/order/);
  expect(() => stage.choose({ ordre: 'ascending' } as never)).toThrow(/ordre/);
  expect(stage.sandbox.choices.order).toBe('ascending');
});
