// The people of the sandbox: invented, the same for the same seed, and unreachable by mail or phone.
// Names come from faker; email addresses use domains reserved for examples, phone numbers use ranges reserved for fiction.

import { faker } from '@faker-js/faker/locale/en_AU';
import type { JobSeekingFacts } from './plan.ts';
import { createDraw, type Draw } from './random.ts';

/** A jobseeker with an account; one person may apply many times. */
export interface Person {
  readonly number: number;
  readonly firstName: string;
  readonly lastName: string;
  readonly email: string;
  readonly phone: string;
  readonly jobSeekerId: string;
  readonly suburb: string;
  readonly jobSeekingInfo: JobSeekingFacts | null;
}

/** The words from which people, jobs and letters are built. */
export interface Stock {
  readonly firstNames: readonly string[];
  readonly lastNames: readonly string[];
  readonly jobTitles: readonly string[];
  readonly companies: readonly string[];
  readonly suburbs: readonly string[];
}

/** The nth person of a seed. */
export function inventPerson(stock: Stock, seed: number, number: number): Person {
  const draw = createDraw(seed, 1, number);
  const firstName = draw.perMille(15) ? draw.pick(rareFirstNames) : draw.pick(stock.firstNames);
  const lastName = draw.perMille(25) ? draw.pick(rareLastNames) : draw.pick(stock.lastNames);
  const mailbox = `${toMailbox(firstName)}.${toMailbox(lastName)}${number % 1000}`;
  return {
    number,
    firstName,
    lastName,
    email: `${mailbox}@${draw.pick(['example.com', 'example.org', 'example.net', 'mail.example.com'])}`,
    phone: inventPhone(draw),
    jobSeekerId: inventUuid(draw),
    suburb: draw.pick(stock.suburbs),
    jobSeekingInfo: draw.perMille(700) ? inventJobSeekingInfo(stock, draw) : null,
  };
}

const stocks = new Map<number, Stock>();

/** The words of a seed. Inventing them takes about 30 ms, so all sandboxes of the process share them. */
export function createStock(seed: number): Stock {
  const stock = stocks.get(seed) ?? inventStock(seed);
  stocks.set(seed, stock);
  return stock;
}

function inventStock(seed: number): Stock {
  faker.seed(seed);
  const several = (count: number, invent: () => string) => [...new Set(Array.from({ length: count }, invent))];
  return {
    firstNames: several(900, () => faker.person.firstName()),
    lastNames: several(900, () => faker.person.lastName()),
    jobTitles: several(300, () => faker.person.jobTitle()),
    companies: several(400, () => faker.company.name()),
    suburbs: several(200, () => faker.location.city()),
  };
}

// Names that careless software corrupts; real data always contain a few.
const rareFirstNames = ['Zoë', 'José', 'Anne-Marie', 'Siân', 'Mary Jane', 'Ngọc', 'Łukasz', 'Jo'];
const rareLastNames = [
  "O'Brien",
  "D'Angelo",
  'Nguyễn',
  'Müller',
  'van der Berg',
  'Smith-Jones',
  'Ó Súilleabháin',
  'Ng',
];

// The numbers that the Australian regulator reserves for fiction.
const fictionMobiles = (
  '0491570006 0491570156 0491570157 0491570158 0491570159 0491570110 0491570313 0491570737 0491571266 0491571491 ' +
  '0491571804 0491572549 0491572665 0491572983 0491573770 0491573087 0491574118 0491574632 0491575254 0491575789 ' +
  '0491576398 0491576801 0491577426 0491577644 0491578957 0491578148 0491578888 0491579212 0491579760 0491579455'
).split(' ');

function inventPhone(draw: Draw): string {
  if (draw.perMille(350)) {
    const line = String(draw.below(10_000)).padStart(4, '0');
    return `(${draw.pick(['02', '03', '07', '08'])}) ${draw.pick(['5550', '7010'])} ${line}`;
  }
  const mobile = draw.pick(fictionMobiles);
  if (draw.perMille(400)) return mobile;
  const spaced = `${mobile.slice(1, 4)} ${mobile.slice(4, 7)} ${mobile.slice(7)}`;
  return draw.perMille(300) ? `+61 ${spaced}` : `0${spaced}`;
}

function inventJobSeekingInfo(stock: Stock, draw: Draw): JobSeekingFacts {
  if (draw.perMille(120)) {
    return { jobTitle: null, companyName: null, timeInRoleMonths: null, isNewToWorkforce: true };
  }
  return {
    jobTitle: draw.pick(stock.jobTitles),
    companyName: draw.pick(stock.companies),
    timeInRoleMonths: draw.below(12) + draw.below(15) * draw.below(15),
    isNewToWorkforce: false,
  };
}

/** An identifier shaped like a random UUID. */
export function inventUuid(draw: Draw): string {
  const hex = Array.from({ length: 4 }, () => draw.below(0x1_0000_0000).toString(16).padStart(8, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function toMailbox(name: string): string {
  const plain = name.normalize('NFD').toLowerCase().replace('ł', 'l');
  return plain.replace(/[^a-z]/g, '') || 'someone';
}
