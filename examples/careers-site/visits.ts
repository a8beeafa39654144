// Visits in memory: what is known of the candidate who sits in front of a browser now. Bounded in number and in time.

import { randomBytes } from 'node:crypto';

export type FieldName = 'firstName' | 'lastName' | 'email' | 'phone' | 'lastJob' | 'skills';

/** What the form asks for. */
export type Applicant = { readonly [Name in FieldName]?: string };

export interface Resume {
  readonly fileName: string;
  readonly bytes: Uint8Array;
}

/** What is wrong with a field, in words for the candidate. */
export type Problems = { readonly [Name in FieldName | 'resumeFile']?: string };

export interface Visit {
  readonly applicant: Applicant;
  /** The form was filled in from a profile. */
  readonly isFilledIn: boolean;
  /** Why what was sent last could not be taken. */
  readonly problems: Problems;
  readonly resume: Resume | null;
  /** How many tabs of this browser are on their way to the job board. */
  readonly pending: number;
  /** Set once the application was sent. */
  readonly sent: { readonly firstName: string; readonly resumeBytes: number } | null;
}

const lifetimeMs = 30 * 60_000;
const most = 1_000;
const emptyVisit: Visit = { applicant: {}, isFilledIn: false, problems: {}, resume: null, pending: 0, sent: null };

/** Keeps visits by unguessable names. */
export function createVisits() {
  const visits = new Map<string, { readonly visit: Visit; readonly endsAt: number }>();
  const prune = () => {
    const now = Date.now();
    for (const [name, { endsAt }] of visits) if (endsAt <= now || visits.size >= most) visits.delete(name);
  };
  return {
    begin(known: Partial<Visit>): { readonly name: string; readonly visit: Visit } {
      if (visits.size >= most) prune();
      const name = randomBytes(32).toString('base64url');
      const visit: Visit = { ...emptyVisit, ...known };
      visits.set(name, { visit, endsAt: Date.now() + lifetimeMs });
      return { name, visit };
    },
    find(name: string | undefined): Visit | null {
      const found = visits.get(name ?? '');
      return found && found.endsAt > Date.now() ? found.visit : null;
    },
    end(name: string | undefined): void {
      visits.delete(name ?? '');
    },
  };
}
