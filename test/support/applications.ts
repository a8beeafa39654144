// Applications and pages for tests of the store: plain values, as source/ would hand them over.
import { hash } from 'node:crypto';
import type { Application, Attachment } from '../../src/domain/application.ts';
import type { PageCommit } from '../../src/store/applications/diff-page.ts';
import type { Lease } from '../../src/store/sweeps/leases.ts';
import type { Progress } from '../../src/store/sweeps/sweeps.ts';

/** An application; its hashes follow from its facts. */
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
    ...facts,
  };
  const toText = (one: object) =>
    JSON.stringify(one, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
  const attachments = application.attachments.map((one) => ({ ...one, sourceHash: null }));
  return {
    ...application,
    contentHash: facts.contentHash ?? hash('sha256', toText(application)),
    factsHash: facts.factsHash ?? hash('sha256', toText({ ...application, attachments })).slice(0, 32),
  };
}

/** An attachment that waits to be fetched. */
export function anAttachment(kind: string, facts: Partial<Attachment> = {}): Attachment {
  return {
    kind,
    sourceHash: `hash-of-${kind}`,
    sizeBytes: 1_000,
    hasVirus: false,
    uploadedAt: Date.UTC(2026, 0, 1),
    href: null,
    ...facts,
  };
}

let sequence = 0n;

/** What the tests vary of a page: the rest is one live sweep over everything; requests are numbered as they are made. */
export interface PageFacts {
  readonly advertiserId?: bigint;
  readonly seq?: bigint;
  readonly rejects?: PageCommit['rejects'];
  readonly sweepId?: bigint;
  readonly progress?: Partial<Progress>;
}

export function aPage(lease: Lease, applications: readonly Application[], facts: PageFacts = {}): PageCommit {
  const startedAt = new Date();
  const progress: Progress = {
    sweep: { sweepId: facts.sweepId ?? 1n, purpose: 'live', axis: 'id', low: 1n, high: null, startedAt },
    quiet: false,
    outside: false,
    facts: '{}',
    dropped: [],
    added: [],
    bytes: 100,
    cursor: null,
    ended: null,
    ...facts.progress,
  };
  return {
    lease,
    advertiserId: facts.advertiserId ?? 7n,
    seq: facts.seq ?? ++sequence,
    applications,
    rejects: facts.rejects ?? [],
    startedAt,
    askedAt: new Date(startedAt.getTime() + 3_600_000),
    asked: { low: 1n, high: null, limit: 21, fromTop: false },
    learn: () => progress,
  };
}
