// Asks the source on behalf of one account, checks whose data the answer holds, and commits its applications. A failure is an answer, too:
// where the source fails for one question and serves another, the sweep asks in smaller parts.
import type { Page } from '../../domain/application.ts';
import { contains, coveredOf, type IdRange, isSingle, rangeOf } from '../../domain/coverage/position.ts';
import {
  type Answer,
  dateSlackSeconds,
  type ListedRow,
  type PageAnswer,
  type Question,
} from '../../domain/coverage/question.ts';
import type { Sent } from '../../domain/evidence/record.ts';
import { formatBytes } from '../../domain/format.ts';
import { NotBelieved, Trouble } from '../../domain/trouble.ts';
import type { ListFilters, Source } from '../../source/client.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { PageProgress, PageSummary } from '../../store/applications/commit-page.ts';
import type { PageDiff, ReadPage } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { Sweep, Ticket } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from '../accounts/held-lane.ts';

export interface ReceivedAnswer {
  /** Null: none came. */
  readonly page: Page | null;
  /** What the page says to the sweep's reasoning. */
  readonly answer: Answer;
  readonly question: Question;
  readonly ticket: Ticket;
  readonly sent: Sent;
}

/** The answer, once its page was compared with the stored rows. */
export function compared({ answer }: ReceivedAnswer, { fresh, lacking }: PageDiff): Answer {
  return answer.kind === 'page' ? { ...answer, news: new Set(fresh.map(({ id }) => id)), lacking } : answer;
}

/** More ids that fail are too many to believe: then the source is in trouble, and no further id is marked as unreadable. */
const mostFailedIds = 20;

/** Returns the function that asks. It throws where the answer is of another account; the first answer tells the id of the account. */
export function createAsker(
  { store, source }: { readonly store: Pick<Store, 'advertisers' | 'sweeps'>; readonly source: Source },
  advertiser: KnownAdvertiser,
  signal: AbortSignal,
) {
  /** Ranges whose questions have failed. */
  const failing: IdRange[] = [];
  /** The last question that was served. If another one fails, this one shows whether the source serves anything. */
  let served: Question | null = null;
  /** A wider question has failed, so this one is tried once only. */
  const isHopeless = ({ covers }: Question) =>
    covers !== null && !isSingle(covers) && failing.some(({ from, to }) => from <= covers.from && covers.to <= to);

  /** Sends the question. Throws Trouble where the source fails for it and serves no other question either. */
  async function request(
    question: Question,
    tries: 'one' | 'several',
  ): Promise<Pick<ReceivedAnswer, 'page' | 'answer'>> {
    const filters = toFilters(question);
    try {
      const listed = await source.list(filters, signal, tries);
      if (listed.kind === 'page') return { page: listed.page, answer: toAnswer(listed.page, filters) };
      const why = `its answer is larger than ${formatBytes(listed.bytes)}`;
      return { page: null, answer: { kind: 'unanswered', why, ids: listed.ids } };
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      if (isRefusal(error, question)) {
        // A request with one id filter shows whether the source refuses these filters or every request.
        await source.list({ afterId: question.afterId ?? 0n }, signal);
        return { page: null, answer: { kind: 'refused' } };
      }
      if (!isFailure(error)) throw error;
      if (tries === 'one') return { page: null, answer: { kind: 'unanswered', why: error.message, ids: [] } };
      await requireServed(error);
      return await request(question, 'one');
    }
  }

  /** Throws the trouble unless the source serves another question: one that it has served before, or one about ids that nobody has. */
  async function requireServed(trouble: Trouble): Promise<void> {
    const filters = served === null ? { afterId: 0n, beforeId: 1n } : toFilters(served);
    await source.list(filters, signal, 'one').catch((error: unknown) => {
      signal.throwIfAborted();
      throw error instanceof Trouble && error.kind === 'throttled' ? error : trouble;
    });
  }

  return async (question: Question): Promise<ReceivedAnswer> => {
    const ticket = await store.sweeps.takeTicket();
    const startedAt = performance.now();
    const { page, answer } = await request(question, isHopeless(question) ? 'one' : 'several');
    const tookMs = Math.round(performance.now() - startedAt);
    if (answer.kind === 'unanswered' && question.covers !== null) {
      failing.push(question.covers);
      if (failing.filter(isSingle).length > mostFailedIds)
        throw new NotBelieved('unreachable', `The source fails for one id after the other: ${answer.why}`, {
          at: 'source',
        });
    }
    if (page !== null) {
      served = question;
      await checkIdentity(store, advertiser, page);
    }
    return { page, answer, question, ticket, sent: { sentAt: ticket.at.getTime(), tookMs } };
  };
}

/** The first answer pins the id; another id halts the advertiser. Once it is pinned, an answer that names no advertiser is accepted. */
async function checkIdentity(
  { advertisers }: Pick<Store, 'advertisers'>,
  advertiser: KnownAdvertiser,
  { advertiserId: told, agentId }: Page,
): Promise<void> {
  const { name, advertiserId } = advertiser;
  if (told === null) {
    if (advertiserId !== null) return;
    const unnamed =
      'The answer does not say whose applications it lists; set ADVERTISER_ID, or advertiserId in ADVERTISERS_FILE. None of it was stored.';
    throw new Trouble('mismatch', unnamed);
  }
  if (advertiserId === null) advertiser.advertiserId = (await advertisers.pinAdvertiser(name, told)).advertiserId;
  else if (told !== advertiserId) {
    const reason = `the source answered with data of advertiser ${told} instead of ${advertiserId}; none of it was stored.`;
    await advertisers.haltAdvertiser(name, 'mismatch', reason);
    throw new Trouble('mismatch', `${name} is halted: ${reason}`);
  }
  if (agentId !== advertiser.agentId) {
    await advertisers.noteAgent(name, agentId);
    advertiser.agentId = agentId;
  }
}

/** True if the source failed, or its answer could not be read: it may fail for this question alone. */
function isFailure({ kind, status, at }: Trouble): boolean {
  if (at !== undefined && at !== 'source') return false;
  return kind === 'malformed' || (kind === 'unreachable' && (status === undefined || status === 408 || status >= 500));
}

/** A source does not refuse one id filter. A 401 counts as a refusal of the filters only by date, where no proof depends on it. */
function isRefusal({ status }: Trouble, { covers, afterId, beforeId, afterDate, beforeDate }: Question): boolean {
  if (afterDate === null && beforeDate === null && (afterId === null || beforeId === null)) return false;
  return [400, 403, 422].includes(status ?? 0) || (covers === null && status === 401);
}

function toFilters({ afterId, beforeId, afterDate, beforeDate }: Question): ListFilters {
  return {
    ...(afterId !== null && { afterId }),
    ...(beforeId !== null && { beforeId }),
    ...(afterDate !== null && { afterDate: Number(afterDate) * 1_000 }),
    ...(beforeDate !== null && { beforeDate: Number(beforeDate) * 1_000 }),
  };
}

function toAnswer(page: Page, filters: ListFilters): PageAnswer {
  const { bytes, weakEmpty, cached, rejects } = page;
  const shown = { rows: toRows(page), unreadable: rejects.length, bytes, weakEmpty, cached };
  return { kind: 'page', ...shown, echo: toEcho(filters, page.echo), news: new Set(), lacking: [] };
}

/** Servers write the first or the last date that they know for "none". A filter cannot name a date beyond it. */
const isUsual = (at: number) => at > Date.UTC(1900, 0) && at < Date.UTC(2200, 0);

/** The rows of a page. The bytes of the page are divided among the rows in proportion to the length of their stored text. */
function toRows(page: Page): ListedRow[] {
  const byId = new Map(page.applications.map((a) => [a.id, a]));
  const kept = page.ids.reduce((sum, id) => sum + (byId.get(id)?.raw.length ?? 0), 0);
  const perKept = kept === 0 ? 0 : page.bytes / kept;
  return page.ids.map((id) => {
    const { submittedAt = null, raw = '' } = byId.get(id) ?? {};
    const at = submittedAt !== null && isUsual(submittedAt) ? BigInt(Math.floor(submittedAt / 1_000)) : null;
    return { id, at, bytes: Math.ceil(raw.length * perKept) };
  });
}

/** Dates are sent without a time zone, so the source may echo them in any zone. */
const zoneSlackMs = Number(dateSlackSeconds) * 1_000;

/** Whether the filters that the answer echoes are those that were sent. */
function toEcho(sent: ListFilters, echo: Page['echo']): PageAnswer['echo'] {
  const pairs = (['afterId', 'beforeId', 'afterDate', 'beforeDate'] as const).map((name) => {
    const [asked, echoed] = [sent[name], echo[name]];
    if (asked === undefined) return echoed === null || echoed === undefined ? 'matches' : 'differs';
    if (echoed === undefined) return 'absent';
    const isSame = typeof asked === 'bigint' ? asked === echoed : Math.abs(asked - Number(echoed)) <= zoneSlackMs;
    return echoed !== null && isSame ? 'matches' : 'differs';
  });
  return pairs.includes('differs') ? 'differs' : pairs.includes('absent') ? 'absent' : 'matches';
}

interface CommitDeps {
  readonly store: {
    readonly applications: Pick<Store['applications'], 'diffPage' | 'commitPage'>;
    readonly sweeps: Pick<Store['sweeps'], 'findHidden' | 'endCertificates'>;
  };
  readonly source: Pick<Source, 'toElement'>;
}

/** Who asks. The certificates that its answer contradicts name it; null for an answer that contradicts none. */
export type Asker =
  | 'a poll'
  | 'a sweep by ids'
  | 'a backfill by date'
  | 'a question about an unreadable id'
  | 'a random audit'
  | 'the check by date'
  | null;

export const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, stale: [] };

/** So many tries fail only if another lane changes the same applications between every comparison and its commit. */
const mostTries = 20;

/**
 * Compares a page with the stored rows and commits it, again and again until the rows have not changed in between. `learn` says what the
 * page advances besides. Applications whose id is another person's go to quarantine. The hidden applications of the page (findHidden) end
 * the certificates that cover them, before they are stored: a stored application cannot be found hidden any more. Returns their ids, too.
 */
export async function commitAnswer(
  { store: { applications, sweeps }, source }: CommitDeps,
  page: ReadPage,
  by: Asker,
  learn?: (diff: PageDiff) => Promise<PageProgress | null>,
): Promise<PageSummary & { readonly hidden: readonly bigint[] }> {
  const { advertiserId, sweep } = page;
  // A sweep that learns from the page judges its own range itself.
  const own = learn && by === 'a sweep by ids' ? sweep : null;
  const reason = `${by} found an application that the proof did not show`;
  const hidden: bigint[] = [];
  for (let tries = 0; tries < mostTries; tries++) {
    const diff = await applications.diffPage(page);
    const judged = by === null ? [] : diff.fresh.filter(({ id }) => own === null || !contains(rangeOf(own), id));
    const found = judged.length === 0 ? [] : await sweeps.findHidden(advertiserId, judged, by === 'a poll');
    if (found.length > 0) await sweeps.endCertificates(advertiserId, found, reason);
    hidden.push(...found);
    const progress = (await learn?.(diff)) ?? null;
    if (progress === null && needsNoCommit(diff)) return { ...nothingWritten, hidden };
    const rejects = [...page.rejects, ...diff.strangers.map(source.toElement)];
    const summary = await applications.commitPage({ ...page, rejects }, diff, progress);
    if (summary !== 'outdated') return { ...summary, hidden };
  }
  throw new Trouble('local', 'Another process keeps changing the applications of this page.', { at: 'database' });
}

/** While another lane is active, a page without changes is committed too, so that its ids and its request number are recorded. */
export function needsNoCommit({ writes, otherLane }: PageDiff): boolean {
  return writes === 0 && !otherLane;
}

export function toReadPage(
  { lease }: HeldLane,
  advertiserId: bigint,
  sweep: Sweep | null,
  answer: ReceivedAnswer,
): ReadPage {
  const { question, ticket, page } = answer;
  const { applications = [], rejects = [], shared = [] } = page ?? {};
  const asked = page && question.covers && coveredOf(question.covers);
  return { lease, advertiserId, seq: ticket.seq, sweep, askedAt: ticket.at, asked, applications, rejects, shared };
}
