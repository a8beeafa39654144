// Applications and pages for tests of the store: plain values, as source/ returns them.
import { hash, type KeyObject } from 'node:crypto';
import type { Application, Attachment } from '../../src/domain/application.ts';
import { toElement } from '../../src/source/parse/list.ts';
import type { Lease } from '../../src/store/accounts/leases.ts';
import {
  commitPage as commitDiff,
  type PageProgress,
  type PageSummary,
} from '../../src/store/applications/commit-page.ts';
import { diffPage, type PageDiff, type ReadPage } from '../../src/store/applications/diff-page.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import type { Store } from '../../src/store/store.ts';
import type { Sweep, SweepProgress } from '../../src/store/sweeps/sweeps.ts';
import { commitAnswer, needsNoCommit } from '../../src/sync/read/answers.ts';
import type { TestDatabase } from './database/test-database.ts';

/** An application; its hashes are computed from its facts. */
export function anApplication(id: number | bigint, facts: Partial<Application> = {}): Application {
  const application = {
    id: BigInt(id),
    submittedAt: Date.UTC(2026, 0, 1) + Number(id) * 60_000,
    sourceOffset: '+11:00',
    email: `person${id}@example.com`,
    firstName: 'Ada',
    lastName: `Number ${id}`,
    phone: '0491 570 156',
    jobSeekerId: `js-${id}`,
    jobReference: `JOB-${Number(id) % 7}`,
    jobSeekingInfo: { jobTitle: 'Cook', companyName: 'Example Pty Ltd', timeInRoleMonths: 12, isNewToWorkforce: false },
    attachments: [anAttachment('resume', { href: `advertiser/applications/resume/${id}` })],
    notes: [],
    raw: JSON.stringify({ ID: Number(id) }),
    rawText: null,
    members: {},
    ...facts,
  };
  const toText = (one: object) =>
    JSON.stringify(one, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
  const toHash = (one: object) => hash('sha256', toText(one)).slice(0, 32);
  const attachments = application.attachments.map((one) => ({ ...one, sourceHash: null }));
  return {
    ...application,
    contentHash: facts.contentHash ?? hash('sha256', toText(application)),
    factsHash:
      facts.factsHash ?? toHash({ ...application, attachments, members: {} }) + toHash(application.attachments),
  };
}

/** An attachment that is not yet downloaded. */
export function anAttachment(kind: string, facts: Partial<Attachment> = {}): Attachment {
  return {
    kind,
    sourceHash: `hash-of-${kind}`,
    sizeBytes: 1_000,
    hasVirus: false,
    uploadedAt: Date.UTC(2026, 0, 1),
    uploadedOffset: null,
    href: null,
    ...facts,
  };
}

let sequence = 0n;

/** The parts of a page that tests vary. The rest describes one live sweep over all ids; pages are numbered in the order of creation. */
export interface PageFacts {
  readonly advertiserId?: bigint;
  readonly seq?: bigint;
  readonly rejects?: ReadPage['rejects'];
  readonly shared?: ReadPage['shared'];
  readonly sweepId?: bigint;
  readonly progress?: Partial<SweepProgress>;
  /** A quiet page that changes nothing is not committed, as in a poll. */
  readonly isQuiet?: boolean;
}

/** A page, and the progress of its sweep after it. */
export interface TestPage extends ReadPage {
  readonly sweep: Sweep;
  readonly progress: SweepProgress;
  readonly isQuiet: boolean;
}

export function aPage(lease: Lease, applications: readonly Application[], facts: PageFacts = {}): TestPage {
  const startedAt = new Date();
  const progress: SweepProgress = {
    facts: '{}',
    dropped: [],
    added: [],
    lacked: [],
    unreadable: [],
    bytes: 100,
    cursor: null,
    ended: null,
    evidence: [],
    ...facts.progress,
  };
  return {
    lease,
    advertiserId: facts.advertiserId ?? 7n,
    seq: facts.seq ?? ++sequence,
    sweep: { sweepId: facts.sweepId ?? 1n, purpose: 'live', axis: 'id', low: 1n, high: null, startedAt },
    askedAt: new Date(startedAt.getTime() + 3_600_000),
    asked: { low: 1n, high: null },
    applications,
    rejects: facts.rejects ?? [],
    shared: facts.shared ?? [],
    progress,
    isQuiet: facts.isQuiet ?? false,
  };
}

/** Commits a page as a sweep does, again while its diff is outdated. */
export async function commitPage(
  db: Database,
  key: KeyObject,
  page: TestPage,
  onDiff?: (diff: PageDiff) => void,
): Promise<PageSummary> {
  const applications = {
    diffPage: (one: ReadPage) => diffPage(db, key, one),
    commitPage: (one: ReadPage, diff: PageDiff, progress: PageProgress | null) =>
      commitDiff(db, key, one, diff, progress),
  };
  return await commitPageOf({ applications }, page, onDiff);
}

/** Does the same through a store. */
export async function commitPageOf(
  store: { readonly applications: Pick<Store['applications'], 'diffPage' | 'commitPage'> },
  page: TestPage,
  onDiff?: (diff: PageDiff) => void,
): Promise<PageSummary> {
  const sweeps = { findHidden: async () => [], endCertificates: async () => {} };
  return await commitAnswer({ store: { ...store, sweeps }, source: { toElement } }, page, null, async (diff) => {
    onDiff?.(diff);
    return page.isQuiet && needsNoCommit(diff) ? null : page.progress;
  });
}

/** What was told of an application, oldest first: received, changed, ready, missing, erased. */
export async function loadEventTypes({ query }: Pick<TestDatabase, 'query'>, applicationId: bigint): Promise<string[]> {
  const sql = `SELECT type FROM intake.events WHERE application_id = $1 ORDER BY event_id`;
  return (await query<{ type: string }>(sql, [applicationId])).map(({ type }) => type.replace('application.', ''));
}
