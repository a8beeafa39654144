// The status is one value that the CLI, the page, the metrics and the probes render: the facts, and the problems that follow from them.

import { formatCount, formatMoment, formatSpan } from '../format.ts';
import { describeSchema, isUsable, type Schema } from '../schema.ts';
import type { Wait } from '../trouble.ts';
import { toWebhookProblems, type WebhookStatus } from '../webhook.ts';
import { type AdvertiserStatus, type Limits, type Problem, toAdvertiserProblems } from './advertiser-status.ts';

export interface Status extends Limits {
  readonly at: Date;
  readonly headline: string;
  readonly problems: readonly Problem[];
  readonly waits: readonly Wait[];
  readonly webhooks: readonly WebhookStatus[];
  /** Null where nothing is extracted by schedule. */
  readonly extract: ExtractStatus | null;
  readonly advertisers: readonly AdvertiserStatus[];
}

export interface ExtractStatus {
  readonly location: string;
  readonly publishedAt: Date | null;
  readonly withinMs: number;
}

/** What the status needs besides the advertisers. Where one is absent, nothing is known or nothing is a limit. */
type CommonFacts = Omit<Status, 'at' | 'headline' | 'problems' | 'advertisers'> & { readonly schema: Schema };

const noLimits: Limits = { staleAfterMs: null, proofLimitMs: null, verifyWithinMs: null };

/** Combines the facts and the problems that follow from them, urgent problems first. */
export function toStatus(
  at: Date,
  advertisers: readonly AdvertiserStatus[],
  { schema, ...known }: Partial<CommonFacts> = {},
): Status {
  const facts = { ...noLimits, waits: [], webhooks: [], extract: null, ...known };
  const { waits, webhooks, extract } = facts;
  const awaited = new Set(waits.flatMap(({ task, advertiser }) => (task === 'reading' ? [advertiser] : [])));
  const problems = [
    ...(schema === undefined ? [] : toSchemaProblems(schema)),
    ...toWaitProblems(waits, at),
    ...advertisers.flatMap((one) => toAdvertiserProblems(one, at, facts, awaited.has(one.name))),
    ...webhooks.flatMap((webhook) => toWebhookProblems(webhook, at)),
    ...(extract === null ? [] : toExtractProblems(extract, at)),
  ].sort((a, b) => Number(b.urgent) - Number(a.urgent));
  return { at, headline: toHeadline(advertisers, problems), ...facts, problems, advertisers };
}

function toSchemaProblems(schema: Schema): Problem[] {
  if (isUsable(schema)) return [];
  const what = `The schema is ${describeSchema(schema)}.`;
  const command = schema.state === 'ahead' ? 'intake --version' : 'intake migrate';
  // Not urgent: the workers of the version that migrated the database keep working.
  return [{ advertiser: null, what, command, urgent: false }];
}

/** The status shows a wait at once. It becomes urgent only after this time, since the restart of a server is no emergency. */
const urgentWaitMs = 60_000;

const taskWords = { reading: 'Reading has', downloads: 'Downloads have', deletion: 'Deletion has' } as const;

/** Accounts that wait for the same reason make one problem. It names the account where only one waits. */
function toWaitProblems(waits: readonly Wait[], now: Date): Problem[] {
  const alike = Map.groupBy(waits, ({ task, dependency, reason }) => `${task} ${dependency} ${reason}`);
  return [...alike.values()].map((same) => {
    const [{ advertiser, task, dependency, reason }] = same as [Wait, ...Wait[]];
    const since = Math.min(...same.map((wait) => wait.since.getTime()));
    const who = `${taskWords[task]} been waiting for the ${dependency}`;
    const left = task === 'deletion' ? 'Infected, erased or unused files are still there. ' : '';
    const many = same.length > 1 ? ` (${same.length} advertisers)` : '';
    return {
      advertiser: same.length === 1 ? advertiser : null,
      what: `${who} since ${formatMoment(since)}${many}: ${left}${reason}`,
      command: 'intake doctor',
      urgent: now.getTime() - since >= urgentWaitMs,
    };
  });
}

export function toUnknownStatus(at: Date, since: Date, reason: string): Status {
  const what = `The database has been unreachable since ${formatMoment(since)}`;
  const problem = { advertiser: null, what: `${what}: ${reason}`, command: 'intake doctor', urgent: true };
  return { ...toStatus(at, []), headline: `${what}.`, problems: [problem] };
}

export function isHealthy({ advertisers, problems }: Status): boolean {
  return advertisers.length > 0 && !problems.some((problem) => problem.urgent);
}

/** The status for programs, without the arrival times, which serve only to detect a silence. */
export function toReport(status: Status): object {
  const advertisers = status.advertisers.map(({ submittedAt: _, ...one }) => one);
  return { ...status, healthy: isHealthy(status), advertisers };
}

function toExtractProblems({ location, publishedAt, withinMs }: ExtractStatus, now: Date): Problem[] {
  const problem = (what: string) => [{ advertiser: null, what, command: 'intake extract --since-last', urgent: false }];
  if (publishedAt === null) return problem(`Nothing has been extracted to ${location} yet.`);
  const ageMs = now.getTime() - publishedAt.getTime();
  const age = `${formatSpan(ageMs)} old, the limit is ${formatSpan(withinMs)} (EXTRACT_WITHIN)`;
  return ageMs <= withinMs ? [] : problem(`The extract at ${location} is ${age}.`);
}

function toHeadline(advertisers: readonly AdvertiserStatus[], problems: readonly Problem[]): string {
  if (advertisers.length === 0) return 'No advertiser has been read yet.';
  const total = advertisers.reduce((sum, a) => sum + a.applications, 0);
  // Files that the source does not have yet are left out. The others count: after a one-shot sync, no worker may be running to fetch them.
  const waiting = advertisers.reduce((sum, a) => sum + a.waiting - a.notThere, 0);
  const files = waiting > 0 ? `; ${formatCount(waiting, 'file waits', 'files wait')} to be fetched` : '';
  const held = `${formatCount(total, 'application')} of ${formatCount(advertisers.length, 'advertiser')} stored${files}.`;
  if (problems.length === 0) return `All is well: ${held}`;
  const urgent = problems.filter((problem) => problem.urgent).length;
  const count = urgent > 0 ? urgent : problems.length;
  const need = count === 1 ? 'One problem needs' : `${count} problems need`;
  return `${need} attention${urgent > 0 ? ' now' : ''}; ${held}`;
}
