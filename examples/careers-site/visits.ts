// Keeps visits in memory: the data of the candidate who uses a browser now. Limited in number and lifetime.

import { randomBytes } from 'node:crypto';

export type FieldName = 'firstName' | 'lastName' | 'email' | 'phone' | 'lastJob' | 'skills';

/** The fields of the form. */
export type Applicant = { readonly [Name in FieldName]?: string };

export interface Resume {
  readonly fileName: string;
  readonly bytes: Uint8Array;
}

/** A message to the candidate for each invalid field. */
export type Problems = { readonly [Name in FieldName | 'resumeFile']?: string };

export interface Visit {
  readonly applicant: Applicant;
  /** True when the form was filled in from a profile. */
  readonly isFilledIn: boolean;
  /** What was wrong with the form that was sent last. */
  readonly problems: Problems;
  readonly resume: Resume | null;
  /** The flows that clicks on the button began and that have not brought a profile yet, over all tabs of this browser. */
  readonly begun: readonly string[];
  /** Set after the application was sent. */
  readonly sent: { readonly firstName: string; readonly resumeBytes: number } | null;
}

const lifetimeMs = 30 * 60_000;
const most = 1_000;
const emptyVisit: Visit = { applicant: {}, isFilledIn: false, problems: {}, resume: null, begun: [], sent: null };

/** Creates a store of visits with unguessable names. */
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
