// Invents applications: the nth application of a seed always has the same person, job, files and answers.
// An account keeps only a row for each, so 200,000 applications cost little. Does not know choices or wire formats.

import { type BoardFile, createFiller, inventFile, toFile } from './files.ts';
import { inventPerson, type Person, type Stock } from './people.ts';
import type { AttachmentPlan, FilledScreen, ParsedPlan } from './plan.ts';
import { answerQuestionnaire, inventQuestionnaires, type Questionnaire } from './questionnaires.ts';
import { createDraw, type Draw } from './random.ts';
import type { Templates } from './templates.ts';

/** What an account keeps of an application: enough to invent the rest at any time. */
export interface BoardRow {
  readonly id: bigint;
  /** The number of this application within its seed. */
  readonly ordinal: number;
  readonly submittedAt: number;
  readonly plan: ParsedPlan | null;
}

/** An application in full. */
export interface SandboxApplication extends Omit<Person, 'number' | 'suburb'> {
  readonly id: bigint;
  readonly submittedAt: number;
  readonly jobReference: string | null;
  readonly attachments: readonly SandboxAttachment[];
  readonly screens: readonly FilledScreen[];
  readonly plan: ParsedPlan | null;
}

/** An attachment. A screen has no file; its bytes are rendered. */
export interface SandboxAttachment {
  readonly kind: string;
  readonly hasVirus: boolean | null;
  readonly uploadedAt: number;
  readonly file: BoardFile | null;
  readonly plan: AttachmentPlan | null;
}

/** Everything from which the applications of one seed are invented. */
export interface World {
  readonly seed: number;
  readonly stock: Stock;
  readonly templates: Templates;
  readonly jobs: readonly Job[];
  /** Job numbers, each repeated in proportion to its applicants. */
  readonly popularity: readonly number[];
}

interface Job {
  readonly title: string;
  readonly reference: string | null;
  readonly questionnaires: readonly Questionnaire[];
}

/** The application of a row. */
export function toApplication(world: World, row: BoardRow): SandboxApplication {
  const { plan } = row;
  const draw = createDraw(world.seed, 2, row.ordinal);
  const person = inventPerson(world.stock, world.seed, choosePerson(draw, row.ordinal));
  const job = world.jobs[draw.pick(world.popularity)] as Job;
  const questionnaire = job.questionnaires.length > 0 && draw.perMille(900) ? draw.pick(job.questionnaires) : null;
  const screens = plan?.screens ?? (questionnaire ? [answerQuestionnaire(questionnaire, draw)] : []);
  const attachments = inventAttachments(
    world,
    draw,
    person,
    job,
    row,
    screens.length > 0 || plan?.rawScreen !== undefined,
  );
  return {
    id: row.id,
    submittedAt: row.submittedAt,
    email: plan?.email ?? person.email,
    firstName: plan?.firstName ?? person.firstName,
    lastName: plan?.lastName ?? person.lastName,
    phone: plan?.phone ?? person.phone,
    jobSeekerId: plan?.jobSeekerId ?? person.jobSeekerId,
    jobReference: plan?.jobReference === undefined ? job.reference : plan.jobReference,
    jobSeekingInfo: plan?.jobSeekingInfo === undefined ? person.jobSeekingInfo : plan.jobSeekingInfo,
    attachments: plan ? toPlanned(world, plan, person, row, attachments) : attachments,
    screens,
    plan,
  };
}

/** The world of a seed. */
export function createWorld(seed: number, templates: Templates, stock: Stock): World {
  const draw = createDraw(seed, 3);
  const jobs = Array.from({ length: 48 }, (_, number) => inventJob(stock, draw, number));
  // The kth job gets 1/k of the first job's applicants: a few ads attract most people.
  const popularity = jobs.flatMap((_, number) => Array<number>(Math.floor(240 / (number + 1))).fill(number));
  return { seed, stock, templates, jobs, popularity };
}

/** How many rows have a smaller id. */
export function countBelow(rows: readonly BoardRow[], id: bigint): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle] as BoardRow).id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

function inventJob(stock: Stock, draw: Draw, number: number): Job {
  const title = draw.pick(stock.jobTitles);
  const code = String(draw.below(9000) + 1000);
  const initials = title.replace(/[^A-Z]/g, '').slice(0, 3) || 'JOB';
  const forms = [`REQ-2026-${code}`, `${initials}/${code}`, `${initials}-${code}-VIC`, `00${code}`, code];
  const reference = draw.perMille(150) ? null : draw.pick(forms);
  return { title, reference, questionnaires: inventQuestionnaires(draw, number, title) };
}

/** Three in ten applications come from a person who has applied before. */
function choosePerson(draw: Draw, ordinal: number): number {
  return ordinal > 0 && draw.perMille(300) ? draw.below(ordinal) : ordinal;
}

function inventAttachments(
  world: World,
  draw: Draw,
  person: Person,
  job: Job,
  row: BoardRow,
  screened: boolean,
): SandboxAttachment[] {
  const attach = (kind: string, file: BoardFile | null): SandboxAttachment => ({
    kind,
    hasVirus: file && draw.perMille(5) ? true : draw.perMille(10) ? null : false,
    uploadedAt: row.submittedAt - draw.below(1_200_000),
    file,
    plan: null,
  });
  // Most people send the same resume, with the same bytes, to every job.
  const found = [attach('resume', inventDocument(world, 'resume', person, draw.perMille(800) ? 0 : 1, 'Resume'))];
  if (draw.perMille(620)) {
    found.push(
      attach('coverLetter', inventDocument(world, 'coverLetter', person, row.ordinal, `Application for ${job.title}`)),
    );
  }
  if (draw.perMille(120)) {
    found.push(
      attach(
        'selectionCriteria',
        inventDocument(world, 'selectionCriteria', person, row.ordinal, `Selection criteria: ${job.title}`),
      ),
    );
  }
  if (screened) found.push(attach('screen', null));
  return found;
}

const titles: Readonly<Record<string, string>> = {
  resume: 'Resume',
  coverLetter: 'Cover_Letter',
  selectionCriteria: 'Selection_Criteria',
};

function inventDocument(world: World, kind: string, person: Person, version: number, subject: string): BoardFile {
  const title = titles[kind] ?? 'Document';
  const draw = createDraw(world.seed, 4, person.number, version, Object.keys(titles).indexOf(kind));
  return inventFile(world.templates, draw, person, title, kind === 'resume' ? `${subject} ${version + 1}` : subject);
}

function toPlanned(
  world: World,
  plan: ParsedPlan,
  person: Person,
  row: BoardRow,
  invented: SandboxAttachment[],
): SandboxAttachment[] {
  const make = (wanted: AttachmentPlan): SandboxAttachment => ({
    kind: wanted.kind,
    hasVirus: wanted.hasVirus === undefined ? false : wanted.hasVirus,
    uploadedAt: wanted.uploadedAt ?? row.submittedAt,
    file: wanted.kind === 'screen' ? null : makeFile(world, wanted, person),
    plan: wanted,
  });
  const base = plan.attachments?.map(make) ?? invented;
  const added = plan.attach?.map(make) ?? [];
  const gone = new Set([...added.map((one) => one.kind), ...(plan.detach ?? [])]);
  return [...base.filter((one) => !gone.has(one.kind)), ...added];
}

function makeFile(world: World, wanted: AttachmentPlan, person: Person): BoardFile {
  const made = inventDocument(world, wanted.kind, person, wanted.version ?? 0, 'Resume');
  const fileName = wanted.fileName ?? made.fileName;
  const contentType = wanted.contentType ?? made.contentType;
  if (wanted.content !== undefined) return toFile(Buffer.from(wanted.content), fileName, contentType);
  if (wanted.sizeBytes !== undefined) return createFiller(wanted.sizeBytes, fileName, contentType);
  return { ...made, fileName, contentType };
}
