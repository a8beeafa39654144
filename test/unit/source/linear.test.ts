// Every parser and every text function takes time in proportion to its input: each gets texts of up to 256 kB made of its own delimiters.
// Compares CPU at one size with CPU at a quarter of it, so neither the machine's speed nor its load matters.
import { runInThisContext } from 'node:vm';
import { afterAll, expect, test } from 'vitest';
import { findAccounts, findAddresses, parseAddress, toAccountId, toBareAddress } from '../../../src/domain/person.ts';
import { parseTicket, toAllowedUrl } from '../../../src/domain/prefill.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { toStatusTrouble } from '../../../src/source/http.ts';
import { decodeText } from '../../../src/source/parse/charset.ts';
import { parseDate } from '../../../src/source/parse/dates.ts';
import { isHtml, parseFileName, startsAsHtml } from '../../../src/source/parse/file-description.ts';
import { parseElement, parsePage, scanIds } from '../../../src/source/parse/list.ts';
import { parseProfile } from '../../../src/source/parse/profile.ts';
import { parseScreens } from '../../../src/source/parse/screen.ts';

const base = 'https://api.example.com';
const inXml = (content: string) =>
  `<JobApplicationsList><JobApplication>${content}</JobApplication></JobApplicationsList>`;
const escaped = (text: string) => text.replace(/[<&>]/g, (char) => `&#${char.charCodeAt(0)};`);

const toCopies = (length: number) => Array.from({ length }, (_, nth) => `,{"ID":1,"JobReference":${nth}}`).join('');

/** Delimiters of every format. */
const common = ['a', ' ', '.', '@', '<', '"', '\\', '0', '-', '=', '/', '\n', '\u0301\u0316', '\ud800'];
/** Those that parsers of values meet, whatever the format around them. */
const few = ['<@', '@.', '0', '\u0301\u0316', '\0'];

/** The functions, each with the pieces that its texts are made of. */
const functions: Record<string, readonly [run: (text: string) => unknown, pieces: readonly string[]]> = {
  toBareAddress: [toBareAddress, [...common, '<@', 'mailto:', '>']],
  parseAddress: [parseAddress, [...few, 'a@']],
  toAccountId: [toAccountId, [...few, '\u200b', 'null']],
  findAddresses: [findAddresses, [...common, '!!!@a1', '%40', 'a@b.', '\\u0040', "o'-."]],
  findAccounts: [
    findAccounts,
    [
      ...['"jobseekerid":"', '"jobseekerid"', '"jobseekerid": 1', '"', '"jobseekerid":"\\"', '\\"'],
      ...['"jobseekerid":[', '"jobseekerid":{"', '"jobseekerid":["\\"', '"jobseekerid":[]'],
    ],
  ],
  startsAsHtml: [(text) => startsAsHtml(Buffer.from(text)), ['<!---->', '<!--', ' ']],
  isHtml: [isHtml, ['<!---->', '<!--', '-->', ' ']],
  parseFileName: [parseFileName, [...common, 'filename=', ";filename*=UTF-8''%20", 'x; filename="', 'x; filename="a.']],
  retryAfter: [
    (text) => toStatusTrouble({ status: 429, headers: { 'retry-after': text, date: text } }, 0),
    ['Mon, ', '9'],
  ],
  parseDate: [parseDate, [...few, '/Date(', '2020-01-01T']],
  decodeText: [
    (text) => decodeText(Buffer.from(text, 'latin1'), text),
    ['charset=', '<?xml encoding="', '\xeb', '\xff ', ' '],
  ],
  scanIds: [scanIds, ['"ID":', '<a:', '<ID ', '<ID>1', '"ID":"1', ' ']],
  parseTicket: [parseTicket, ['1', '.']],
  toAllowedUrl: [(text) => toAllowedUrl(text, [base]), [base, '/']],
  'a page of JSON': [parsePage, ['[{"ID":1},', '{"a":', '[', '"', '"\t', '\\', '1e99', '-1234567890123456,']],
  'a page of XML': [parsePage, ['<', '<a>', '<a/>', '<a b="', '<![CDATA[', '<!--', '<!DOCTYPE', '<?', '&#1;', '<a b']],
  'a text in a JSON element without an id': [(text) => parseElement(JSON.stringify({ Email: text, Other: text })), few],
  'a member of that name': [(text) => parseElement(JSON.stringify({ ID: 1, [text]: text })), ['a', '\0']],
  'attachments that are none': [(text) => parseElement(JSON.stringify({ ID: 1, Attachments: [...text] })), ['a']],
  'copies of an application with a long text': [
    (text) => parsePage(`[{"ID":1,"Email":"a@b.c","Phone":"${text}"}${toCopies(text.length / 100)}]`),
    ['a'],
  ],
  'a decimal': [(text) => parseElement(JSON.stringify({ ID: 1, X: `1.${text}1` })), ['0']],
  'a text in an XML element': [
    (text) => parsePage(inXml(`<ID>1</ID><Email>${escaped(text)}</Email>`)),
    ['<@', '&', ' '],
  ],
  'markup in an XML element': [
    (text) => parsePage(inXml(`<ID>1</ID>${text}`)),
    ['<a/>', '<Attachments/>', '<a:b c="d"/>', ' '],
  ],
  'a profile': [(text) => parseProfile({ a: text }, base), [...few, '/v2/resumes/', 'a@b.c ']],
  'members of a profile': [
    (text) => parseProfile({ a: Object.fromEntries(Array.from(text.split(' '), (_, at) => [`id${at}`, 'a'])) }, base),
    ['member '],
  ],
  'a screen of JSON': [
    (text) => parseScreens(Buffer.from(JSON.stringify({ screen: { '@id': text } })), text),
    ['"', '\0'],
  ],
  'a screen of XML': [
    (text) => parseScreens(Buffer.from(`<screen id="1">${text}</screen>`), undefined),
    ['<question/>', '<a>', '&lt;'],
  ],
};

/** CPU in microseconds. A text that a function refuses is as good as any; one that takes forever ends after a minute. */
function measure(run: (text: string) => unknown, text: string): number {
  const before = process.cpuUsage();
  globalThis.underTest = () => run(text);
  try {
    runInThisContext('underTest()', { timeout: 60_000 });
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
  }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

declare global {
  var underTest: (() => unknown) | undefined;
}
afterAll(() => {
  globalThis.underTest = undefined;
});

const repeat = (piece: string, size: number) => piece.repeat(Math.ceil(size / piece.length));
/** A quarter of the text takes a quarter of the time, or a sixteenth if the time is quadratic. */
const mostTimes = 9;
/** Below this, the time of anything else in the process decides. */
const leastUs = 20_000;

test.for(Object.entries(functions))('%s takes linear time', { retry: 2 }, ([, [run, pieces]]) => {
  for (const piece of pieces) {
    const times = new Map<number, number>();
    for (let kb = 1; kb <= 256; kb *= 4) {
      const size = kb * 1_024;
      const least = (of: number, tries: number) =>
        Math.min(...Array.from({ length: tries }, () => measure(run, repeat(piece, of))));
      times.set(size, measure(run, repeat(piece, size)));
      const isSlow = (tries: number) =>
        least(size, tries) > leastUs && least(size, tries) > mostTimes * least(size / 4, tries);
      const quarter = times.get(size / 4) ?? Number.POSITIVE_INFINITY;
      if ((times.get(size) ?? 0) > Math.max(leastUs, mostTimes * quarter) && isSlow(3)) {
        expect.fail(
          `${kb} kB of ${JSON.stringify(piece)} take more than ${mostTimes} times as long as a quarter of it.`,
        );
      }
    }
  }
});
