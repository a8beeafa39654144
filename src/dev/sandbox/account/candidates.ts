// The candidates who apply through a careers site: an invented person, a resume, and a profile in the shape of the account's choice.
// Spec silent: the profile's members; the default has the names that one known client reads.

import type { Choices } from '../behaviour/choices.ts';
import { type BoardFile, inventFile } from '../people/files.ts';
import { inventPerson, inventUuid, type Person, type Stock } from '../people/people.ts';
import { createDraw } from '../people/random.ts';
import type { Templates } from '../people/templates.ts';

/** A person who is signed in at the board and may consent to share their profile. */
export interface Candidate {
  readonly person: Person;
  readonly profileId: string;
  readonly resumeId: string;
  readonly resume: BoardFile;
  readonly career: Career;
}

interface Career {
  readonly qualification: string;
  readonly skills: readonly string[];
  readonly postalCode: string;
  readonly jobs: readonly { readonly title: string; readonly company: string; readonly fromYear: number }[];
}

/** The nth candidate of a seed. */
export function inventCandidate(stock: Stock, templates: Templates, seed: number, number: number): Candidate {
  const draw = createDraw(seed, 20, number);
  // A range of numbers beyond the people who have applied through the board itself.
  const person = inventPerson(stock, seed, 900_000_000 + number);
  const jobs = Array.from({ length: 1 + draw.below(4) }, (_, index) => ({
    title: draw.pick(stock.jobTitles),
    company: draw.pick(stock.companies),
    fromYear: 2024 - 3 * index - draw.below(3),
  }));
  return {
    person,
    profileId: inventUuid(draw),
    resumeId: inventUuid(draw),
    resume: inventFile(templates, draw, person, 'Resume', jobs[0]?.title ?? ''),
    career: {
      qualification: draw.pick(qualifications),
      skills: [...new Set(Array.from({ length: 4 }, () => draw.pick(skills)))],
      postalCode: String(2000 + draw.below(2000)),
      jobs,
    },
  };
}

/** The profile as JSON text; null when the account answers without one. */
export function renderProfile(candidate: Candidate, choices: Choices, host: string): string | null {
  const { person } = candidate;
  const link = toResumeLink(candidate, choices, host);
  switch (choices.profile) {
    case 'known':
      return JSON.stringify(toKnown(candidate, link));
    case 'flat':
      return JSON.stringify({ ...toKnown(candidate, null).applicantInfo, ...(link && { resumeUrl: link }) });
    case 'renamed':
      return JSON.stringify({
        candidate: { givenName: person.firstName, familyName: person.lastName, email: person.email },
        documents: [{ purpose: 'cv', self: link }],
      });
    case 'sparse':
      return JSON.stringify({ applicantInfo: { firstName: person.firstName, lastName: null }, resume: { link } });
    case 'empty':
      return '{}';
    case 'list':
      return '[]';
    case 'null':
      return 'null';
    default:
      return null;
  }
}

function toKnown({ person, profileId, career }: Candidate, link: string | null) {
  return {
    id: profileId,
    created: '2023-02-11T03:04:05Z',
    updated: '2026-03-01T22:10:00Z',
    applicantInfo: {
      firstName: person.firstName,
      lastName: person.lastName,
      emailAddress: person.email,
      phoneNumber: person.phone,
      currentLocation: { suburb: person.suburb, postalCode: career.postalCode, countryCode: 'AU' },
      highestQualification: { name: career.qualification, completed: true },
      skills: career.skills,
      salaryAndVisaByCountry: {
        AU: { rightToWork: 'citizen', expectedSalary: { currency: 'AUD', minimum: 82000, per: 'year' } },
        NZ: { rightToWork: 'resident', expectedSalary: null },
      },
      workHistory: career.jobs.map(({ title, company, fromYear }) => ({
        jobTitle: title,
        companyName: company,
        from: `${fromYear}-02`,
        to: null,
      })),
    },
    ...(link !== null && { resume: { link } }),
  };
}

function toResumeLink({ resumeId }: Candidate, choices: Choices, host: string): string | null {
  const links: Readonly<Record<Choices['resumeLink'], string | null>> = {
    absolute: `http://${host}/v2/resumes/${resumeId}`,
    relative: `/v2/resumes/${resumeId}`,
    foreign: `https://files.example.net/v2/resumes/${resumeId}`,
    notUuid: `/v2/resumes/${toPlainId(resumeId)}`,
    absent: null,
  };
  return links[choices.resumeLink];
}

/** The id under which the account serves a resume. */
export function toResumeId({ resumeId }: Candidate, choices: Choices): string {
  return choices.resumeLink === 'notUuid' ? toPlainId(resumeId) : resumeId;
}

function toPlainId(resumeId: string): string {
  return `cv_${Number.parseInt(resumeId.slice(0, 8), 16)}`;
}

const qualifications = ['Bachelor of Nursing', 'Certificate III in Carpentry', 'Diploma of Accounting', 'Year 12'];
const skills = ['Rostering', 'Payroll', 'Forklift licence', 'First aid', 'TypeScript', 'Patient care', 'Budgets'];
