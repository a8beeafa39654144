// A job board that uses almost no CPU. Its applications vary as real ones do; it lists them by id in pages of 500 and supports the id and
// date filters. The sandbox plays the whole API; this board only feeds the benches, so that they time Intake and not the board.

import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ListAnswer, ListFilters, Source } from '../../src/source/client.ts';
import { parsePage, toElement } from '../../src/source/parse/list.ts';

/** A board with the ids 1 to its size. */
export interface Board {
  readonly size: number;
  /** The response body for a request. */
  list(question: BoardQuestion, format: 'json' | 'xml'): string;
  /** The bytes of a file, as long as the list says; null where the path names none. */
  file(path: string): Buffer | null;
}

/** The filters of a request; dates in milliseconds. */
export interface BoardQuestion {
  readonly after: number | null;
  readonly before: number | null;
  readonly afterDate: number | null;
  readonly beforeDate: number | null;
}

export const pageCap = 500;
export const boardAdvertiser = 42n;

/** The texts of so many applications are kept after their first request; the others are rendered at every request. */
const mostKept = 1_000_000;

/** Creates a board. */
export function createBoard(size: number): Board {
  const rendered = { json: [] as string[], xml: [] as string[] };
  return {
    size,
    list(question, format) {
      const from = Math.max(1, (question.after ?? 0) + 1, toId(question.afterDate ?? 0) + 1);
      const bounds = [question.before ?? Infinity, question.beforeDate === null ? Infinity : toId(question.beforeDate)];
      // With a date before the first application the page is empty; a negative end would make slice() count from the end.
      const to = Math.max(from - 1, Math.min(size, from + pageCap - 1, ...bounds.map((bound) => bound - 1)));
      const kept = rendered[format];
      for (let id = from; id <= Math.min(to, mostKept); id++) kept[id] ??= renders[format](id);
      const elements = Array.from({ length: to - from + 1 }, (_, at) => kept[from + at] ?? renders[format](from + at));
      return format === 'json' ? toJsonPage(question, elements) : toXmlPage(question, elements);
    },
    file(path) {
      const [, wanted, id] = /\/([a-z]+)\/(\d+)$/i.exec(path) ?? [];
      const found = toFacts(Number(id)).files.find(({ type }) => type.toLowerCase() === wanted?.toLowerCase());
      return found ? Buffer.alloc(found.size, `${path} `) : null;
    },
  };
}

/** The latency of a nearby board. Without it, every answer would be parsed at the moment when the caller is busiest. */
const answerMs = 10;

/**
 * The board as a source without a network, but with a network's latency. Parses the bytes as the client does, and keeps them, so that a
 * repeated answer costs the board nothing.
 */
export function createLocalSource(board: Board, format: 'json' | 'xml' = 'json'): Source {
  const answers = new Map<string, Buffer>();
  return {
    async list(filters: ListFilters): Promise<ListAnswer> {
      await sleep(answerMs);
      const question = toBoardQuestion(filters);
      const asked = JSON.stringify(question);
      const bytes = answers.get(asked) ?? Buffer.from(board.list(question, format));
      answers.set(asked, bytes);
      const page = parsePage(bytes.toString());
      return {
        kind: 'page',
        page: { ...page, weakEmpty: false, bytes: bytes.length, cached: false, sunsetAt: null },
      };
    },
    openAttachment: () => Promise.reject(new Error('This board has no files.')),
    toElement,
  };
}

function toBoardQuestion({ afterId, beforeId, afterDate, beforeDate }: ListFilters): BoardQuestion {
  return {
    after: afterId === undefined ? null : Number(afterId),
    before: beforeId === undefined ? null : Number(beforeId),
    afterDate: afterDate ?? null,
    beforeDate: beforeDate ?? null,
  };
}

/** The last id that was submitted at or before this time. */
function toId(ms: number): number {
  return Math.floor((ms - firstMs) / stepMs);
}

const firstNames = ['Mia', 'Noah', 'Siobhán', 'José', 'Wei', 'Priya', 'Liam', 'Ngọc', 'Amelia', 'Mohammed'];
const lastNames = ['Nguyen', "O'Brien", 'Smith', 'García', 'Kowalski', 'Singh', 'Papadopoulos', 'Lê', 'Okafor'];
const titles = [
  'Registered Nurse',
  'Forklift Driver',
  'Barista',
  'Civil Engineer',
  'Payroll Officer',
  'Chef de Partie',
];
const firstMs = Date.UTC(2025, 10, 3);
const stepMs = 31_000;

interface Facts {
  readonly id: number;
  readonly at: number;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly phone: string;
  readonly seeker: string;
  readonly reference: string | null;
  readonly title: string | null;
  readonly months: number;
  readonly files: readonly { readonly type: string; readonly hash: string; readonly size: number }[];
}

/** 0.7 job-seeking infos and 2 attachments per application on average, as measured in one account. */
function toFacts(id: number): Facts {
  const digest = hash('md5', `application ${id}`);
  const number = Number.parseInt(digest.slice(0, 8), 16);
  const firstName = firstNames[number % firstNames.length] as string;
  const lastName = lastNames[number % lastNames.length] as string;
  const types = ['resume', ...(number % 3 > 0 ? ['coverLetter'] : []), ...(number % 3 > 1 ? ['screen'] : [])];
  return {
    id,
    at: firstMs + id * stepMs,
    email: `${digest.slice(0, 9)}@mail.example.com`,
    firstName,
    lastName,
    phone: `+61 491 570 ${String(number % 1000).padStart(3, '0')}`,
    seeker: `${digest.slice(0, 8)}-${digest.slice(8, 12)}-${digest.slice(12, 16)}-${digest.slice(16, 20)}-${digest.slice(20)}`,
    reference: number % 5 === 0 ? null : `REQ-2026-${1000 + (number % 800)}`,
    title: number % 10 < 7 ? (titles[number % titles.length] as string) : null,
    months: number % 120,
    files: types.map((type, at) => ({ type, hash: hash('md5', `${id} ${at}`), size: 20_000 + (number % 90_000) })),
  };
}

function renderJson(id: number): string {
  const facts = toFacts(id);
  return JSON.stringify({
    ID: id,
    DateSubmitted: `/Date(${facts.at}+1000)/`,
    Email: facts.email,
    FirstName: facts.firstName,
    LastName: facts.lastName,
    Phone: facts.phone,
    JobSeekerID: facts.seeker,
    ...(facts.reference !== null && { JobReference: facts.reference }),
    Attachments: facts.files.map((file) => ({
      DateUploaded: `/Date(${facts.at - 60_000}+1000)/`,
      HasVirus: false,
      Hash: file.hash,
      Href: `advertiser/applications/${file.type.toLowerCase()}/${id}`,
      Size: file.size,
      Type: file.type,
    })),
    ...(facts.title !== null && {
      PrimaryJobSeekingInfo: {
        JobTitle: facts.title,
        CompanyName: `${facts.lastName} Pty Ltd`,
        TimeInRole: facts.months,
        IsNewToWorkForce: false,
      },
    }),
  });
}

function renderXml(id: number): string {
  const facts = toFacts(id);
  const element = (name: string, value: string | number | boolean) => `<${name}>${value}</${name}>`;
  const files = facts.files.map((file) =>
    element(
      'Attachment',
      element('DateUploaded', toIso(facts.at - 60_000)) +
        element('HasVirus', false) +
        element('Hash', file.hash) +
        element('Href', `advertiser/applications/${file.type.toLowerCase()}/${id}`) +
        element('Size', file.size) +
        element('Type', file.type),
    ),
  );
  const info =
    facts.title === null
      ? ''
      : element(
          'PrimaryJobSeekingInfo',
          element('JobTitle', facts.title) +
            element('CompanyName', `${toText(facts.lastName)} Pty Ltd`) +
            element('TimeInRole', facts.months) +
            element('IsNewToWorkForce', false),
        );
  return element(
    'JobApplication',
    element('ID', id) +
      element('DateSubmitted', toIso(facts.at)) +
      element('Email', facts.email) +
      element('FirstName', facts.firstName) +
      element('LastName', toText(facts.lastName)) +
      element('Phone', facts.phone) +
      element('JobSeekerID', facts.seeker) +
      (facts.reference === null ? '' : element('JobReference', facts.reference)) +
      element('Attachments', files.join('')) +
      info,
  );
}

const renders = { json: renderJson, xml: renderXml };

function toJsonPage(question: BoardQuestion, elements: readonly string[]): string {
  const id = (bound: number | null) => (bound === null ? 'null' : `"${bound}"`);
  const date = (bound: number | null) => (bound === null ? 'null' : `"/Date(${bound}+1000)/"`);
  const { after, before, afterDate, beforeDate } = question;
  const echo = `"AfterDate":${date(afterDate)},"AfterID":${id(after)},"BeforeDate":${date(beforeDate)},"BeforeID":${id(before)}`;
  return `{"JobApplications":{"AdvertiserID":${boardAdvertiser},${echo},"AgentID":null,"JobApplicationsList":[${elements.join()}]}}`;
}

function toXmlPage(question: BoardQuestion, elements: readonly string[]): string {
  const element = (name: string, bound: string | number | null) =>
    bound === null ? `<${name} i:nil="true"/>` : `<${name}>${bound}</${name}>`;
  const date = (bound: number | null) => (bound === null ? null : toIso(bound));
  const echo =
    element('AfterDate', date(question.afterDate)) +
    element('AfterID', question.after) +
    element('BeforeDate', date(question.beforeDate)) +
    element('BeforeID', question.before);
  const root = 'JobApplications xmlns:i="http://www.w3.org/2001/XMLSchema-instance"';
  return `<?xml version="1.0" encoding="utf-8"?><${root}><AdvertiserID>${boardAdvertiser}</AdvertiserID>${echo}<AgentID i:nil="true"/><JobApplicationsList>${elements.join('')}</JobApplicationsList></JobApplications>`;
}

function toIso(ms: number): string {
  return new Date(ms + 36_000_000).toISOString().replace('Z', '+10:00');
}

function toText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll("'", '&apos;');
}
