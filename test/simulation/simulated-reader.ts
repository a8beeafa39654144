// Reads a hidden server with the product's coverage logic (src/domain/coverage) and a map of ids as the store. It knows only what the product
// knows; test/journey/coverage-servers.test.ts holds it against the product.

import {
  type AuditPlace,
  auditQuestions,
  auditSize,
  type Done,
  lackingIds,
} from '../../src/domain/coverage/certificate.ts';
import { ask, begin, type KnownIds } from '../../src/domain/coverage/coverage.ts';
import { learn } from '../../src/domain/coverage/learn.ts';
import { contains, isSingle, nearestPosition, type Position } from '../../src/domain/coverage/position.ts';
import {
  type Answer,
  aloneQuestion,
  type LackingId,
  mostLacking,
  type Question,
} from '../../src/domain/coverage/question.ts';
import {
  decode,
  encode,
  type KnownPages,
  type Learned,
  type Plan,
  type State,
} from '../../src/domain/coverage/state.ts';
import { createRandom } from '../support/suite/random.ts';
import { type HiddenServer, isFailure, type ListReply, type ListRequest } from './hidden-server.ts';

interface HeldId {
  readonly id: bigint;
  readonly firstSeenAt: number;
  readonly submittedAt: bigint | null;
}
export interface Memory {
  now: number;
  readonly held: Map<bigint, HeldId>;
  readonly gone: Set<bigint>;
  readonly absentSince: Map<bigint, number>;
  /** Ids that the last sweep could not read. */
  unreadable: readonly Position[];
  longest: number;
}
export function createMemory(startMs: number): Memory {
  return { now: startMs, held: new Map(), gone: new Set(), absentSince: new Map(), unreadable: [], longest: 0 };
}
export interface SweepOptions {
  readonly plan?: Partial<Plan>;
  readonly pages?: KnownPages | undefined;
  readonly known?: boolean;
  readonly parallel?: number;
  readonly crashes?: number;
  readonly seed?: number;
  readonly pauseMs?: number;
  readonly byteBudget?: number;
  /** Called after each answer; the sweep goes on with the state that it returns. */
  readonly onStep?: (step: Step) => State | undefined;
}
export interface Step {
  readonly question: Question;
  readonly answer: Answer;
  readonly before: State;
  readonly after: State;
  readonly learned: Learned;
  readonly sentAt: number;
}
export interface SweepResult {
  readonly done: Done;
  readonly requests: number;
  readonly lost: readonly bigint[];
  readonly state: State;
}
interface InFlight {
  readonly question: Question;
  readonly reply: Answer;
  readonly sentAt: number;
}

export function runSweep(server: HiddenServer, memory: Memory, options: SweepOptions = {}): SweepResult {
  const startedAt = memory.now;
  const { done, state, requests } = sweepBy(
    (question) => toAnswer(server.list(toRequest(question), memory.now), options.byteBudget),
    memory,
    options,
  );
  const present = server.presentThroughout(startedAt, memory.now);
  // An id that cannot be read and that the sweep names as open is not lost.
  const named = new Set<bigint>(findNamed(done));
  const lost = present.filter((id) => contains(state.facts, id) && !memory.held.has(id) && !named.has(id));
  return { done, requests, lost, state };
}

const findNamed = ({ open }: Done) =>
  open.filter((range) => isSingle(range) && range.stuck !== null).map(({ from }) => from);

/** Sweeps whatever answers. `gone` are the stored ids that two answers lacked. */
export function sweepBy(answerTo: (question: Question) => Answer, memory: Memory, options: SweepOptions) {
  const random = createRandom(options.seed ?? 1);
  const startedAt = memory.now;
  const plan: Partial<Plan> = {
    listedBefore: memory.held.size,
    longestBefore: memory.longest,
    recentFrom: BigInt(Math.floor(startedAt / 1_000)) - 900n,
    seed: options.seed ?? 1,
    ...options.plan,
  };
  const lackedOnce = new Set<bigint>();
  const lackedTwice = new Set<bigint>();
  let known: KnownIds | undefined;
  const sorted = options.known
    ? [...memory.held.keys()].filter((id) => !memory.gone.has(id)).sort((a, b) => (a < b ? -1 : 1))
    : [];
  if (options.known) known = { from: 1n as Position, ids: sorted as Position[], isAll: true };
  let requests = 0;
  let state = begin({ learned: options.pages ?? null, ...plan });
  let inFlight: InFlight[] = [];
  for (;;) {
    const next =
      inFlight.length < (options.parallel ?? 1)
        ? ask(
            state,
            inFlight.map(({ question }) => question),
            known,
          )
        : { kind: 'wait' as const };
    if ('kind' in next && next.kind === 'done') {
      if (next.certificate !== 'unproven') markAbsent(memory, lackedTwice, next.certificate);
      if (state.facts.rigor !== 'poll') {
        memory.longest = next.pages.longest;
        memory.unreadable = findNamed(next);
      }
      return { done: next, requests, state, gone: lackedTwice };
    }
    if ('purpose' in next) {
      memory.now += options.pauseMs ?? 100;
      requests++;
      inFlight.push({ question: next, reply: answerTo(next), sentAt: memory.now });
      continue;
    }
    if (random.chance(options.crashes ?? 0)) {
      inFlight = [];
      state = decode<State>(encode(state));
      continue;
    }
    const [came] = inFlight.splice(random.between(0, inFlight.length - 1), 1);
    if (came === undefined) throw new Error('The sweep is not done, but no question is in flight.');
    const answer = commit(memory, came, startedAt, lackedOnce, lackedTwice);
    const before = state;
    const learned = learn(state, came.question, answer);
    for (const { id, again } of learned.lacked) (again ? lackedTwice : lackedOnce).add(id);
    const step = { question: came.question, answer, before, after: learned.state, learned, sentAt: came.sentAt };
    state = options.onStep?.(step) ?? learned.state;
  }
}

function toRequest({ afterId, beforeId, afterDate, beforeDate }: Question): ListRequest {
  const seconds = (bound: bigint | null) => (bound === null ? null : Number(bound));
  return { afterId, beforeId, afterDate: seconds(afterDate), beforeDate: seconds(beforeDate) };
}

function toAnswer(reply: ListReply, byteBudget = Number.POSITIVE_INFINITY): Answer {
  if (reply.status === 400 || reply.status === 403) return { kind: 'refused' };
  if (isFailure(reply)) return { kind: 'unanswered', why: reply.status === 500 ? 'HTTP 500' : 'no JSON', ids: [] };
  const readable = reply.rows.filter((row) => !row.unreadable);
  const perByte = reply.bytes / readable.reduce((sum, { bytes }) => sum + bytes, 0);
  const rows = readable.map(({ id, submittedAt, bytes }) => ({
    id,
    at: submittedAt === null ? null : BigInt(Math.floor(submittedAt)),
    bytes: Math.ceil(bytes * perByte),
  }));
  if (reply.bytes > byteBudget) {
    const beginning = rows.slice(0, Math.floor((rows.length * byteBudget) / reply.bytes));
    return { kind: 'unanswered', why: 'too long', ids: beginning.map(({ id }) => id) };
  }
  return {
    kind: 'page',
    rows,
    unreadable: reply.rows.length - readable.length,
    bytes: reply.bytes,
    echo: reply.echo,
    weakEmpty: reply.status !== 200 || reply.body === 'none',
    cached: (reply.age ?? 0) > 0,
    news: new Set(),
    lacking: [],
  };
}

function commit(
  memory: Memory,
  { question, reply, sentAt }: InFlight,
  startedAt: number,
  once: Set<bigint>,
  twice: Set<bigint>,
): Answer {
  if (reply.kind !== 'page') return reply;
  const news = new Set(reply.rows.map(({ id }) => id).filter((id) => !memory.held.has(id)));
  const shown = new Set(reply.rows.map(({ id }) => id));
  const lacking: LackingId[] = [];
  const { covers } = question;
  if (covers !== null) {
    for (const { id, firstSeenAt } of memory.held.values()) {
      if (!contains(covers, id) || shown.has(id) || firstSeenAt > sentAt || memory.gone.has(id) || twice.has(id))
        continue;
      lacking.push({ id, old: firstSeenAt < startedAt, again: once.has(id) });
    }
    lacking.sort((a, b) => (a.id < b.id ? -1 : 1));
    lacking.splice(mostLacking);
  }
  for (const { id, at } of reply.rows) {
    if (news.has(id) && !memory.held.has(id)) memory.held.set(id, { id, firstSeenAt: memory.now, submittedAt: at });
    memory.gone.delete(id);
    memory.absentSince.delete(id);
  }
  return { ...reply, news, lacking };
}

function markAbsent(memory: Memory, absent: ReadonlySet<bigint>, certificate: Done['certificate']): void {
  for (const id of absent) {
    const since = memory.absentSince.get(id);
    if (since === undefined) memory.absentSince.set(id, memory.now);
    else if (certificate === 'proven' && memory.now - since > 86_400_000) memory.gone.add(id);
  }
}

/**
 * Runs one audit as a running worker does. Returns true when the audit contradicts the certificate, which covers applications submitted
 * before `provenAt`. The reader stores the rows that the audit finds.
 */
export function runAudit(
  server: HiddenServer,
  memory: Memory,
  { provenAt, pages, random }: { provenAt: number; pages: KnownPages; random: () => number },
): boolean {
  const place = findPlace(memory, random(), auditSize(pages));
  if (place === null) return false;
  const askServer = (question: Question) => {
    memory.now += 100;
    const reply = toAnswer(server.list(toRequest(question), memory.now));
    const answer = commit(memory, { question, reply, sentAt: memory.now }, provenAt, new Set(), new Set());
    return answer.kind === 'page' ? answer : null;
  };
  const [both, lower] = auditQuestions(place, random).map(askServer);
  const isHidden = [both, lower].some((page) =>
    page?.rows.some(({ id, at }) => page.news.has(id) && at !== null && Number(at) * 1_000 < provenAt),
  );
  if (isHidden || !both) return isHidden;
  const page = { ids: both.rows.map(({ id }) => id), bytes: both.bytes };
  return lackingIds(place, page, pages).some((id) => askServer(aloneQuestion(id))?.rows.some((row) => row.id === id));
}

/** Chooses the ids to audit as the store does: from a random position on. */
function findPlace(memory: Memory, random: number, size: number): AuditPlace | null {
  const sorted = [...memory.held.keys()].sort((a, b) => (a < b ? -1 : 1)) as Position[];
  const [low, high] = [sorted[0], sorted.at(-1)];
  if (low === undefined || high === undefined) return null;
  const start = low + BigInt(Math.round(Number(high - low) * random));
  const ids = sorted
    .filter((id) => id >= start && !memory.gone.has(id) && !memory.absentSince.has(id))
    .slice(0, size + 2);
  const [first, last] = [ids[0], ids.at(-1)];
  if (first === undefined || last === undefined) return null;
  if (ids.length < 3) return { ids, from: first, to: last };
  return { ids: ids.slice(1, -1), from: nearestPosition(first + 1n), to: nearestPosition(last - 1n) };
}
