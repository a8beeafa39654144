// Reads a hidden server with the product's coverage logic and a map of ids as the store. It follows the order of the worker, which uses
// HTTP and Postgres: the reader commits a page before it learns from it, stores the state after each answer, and may crash at any point.
// The store's part of an answer comes from `findUnshown`, which is also the reference for the tests of the real store.

import { type AuditPlace, auditQuestions, auditSize, lackingQuestions } from '../../src/domain/coverage/audit.ts';
import { ask, begin, type Done, learn, type Plan } from '../../src/domain/coverage/coverage.ts';
import type { SplitPoints } from '../../src/domain/coverage/next-question.ts';
import type { Answer, PageAnswer, Question } from '../../src/domain/coverage/question.ts';
import {
  decodeFacts,
  decodeRange,
  encode,
  type KnownCapacity,
  type State,
} from '../../src/domain/coverage/sweep-state.ts';
import { toExpectedIds } from '../../src/domain/coverage/unshown.ts';
import { createRandom } from '../support/random.ts';
import { findUnshown, type Held } from './find-unshown.ts';
import { type HiddenServer, isFailure, type ListReply, type ListRequest } from './hidden-server.ts';

/** What a reader remembers between sweeps: when it first saw each id, and which ids are gone at the source. */
export interface Memory {
  /** Virtual time in milliseconds. */
  now: number;
  readonly held: Map<bigint, Held & { readonly submittedAt: bigint | null }>;
  /** Ids that two sweeps more than a day apart did not see. The second sweep was proven, the first was proven or assumed. */
  readonly gone: Set<bigint>;
  readonly absentSince: Map<bigint, number>;
  /** A sweep saw pages that were cut off at different lengths. */
  uneven: boolean;
  /** Rows of the longest page of all sweeps except polls. */
  longest: number;
}

export function createMemory(startMs: number): Memory {
  return { now: startMs, held: new Map(), gone: new Set(), absentSince: new Map(), uneven: false, longest: 0 };
}

export interface SweepOptions {
  readonly plan?: Plan;
  readonly known?: SplitPoints | undefined;
  /** Questions in flight at once. */
  readonly parallel?: number;
  /** Probability that the process crashes before it commits an answer. It then restores the state from its stored text. */
  readonly crashes?: number;
  readonly seed?: number;
  /** Milliseconds from one request to the next. */
  readonly pauseMs?: number;
  /** The reader abandons bodies with more bytes and keeps only their first rows. */
  readonly byteBudget?: number;
  readonly onStep?: (step: SimulatedStep) => void;
}

/** A committed answer, and the state of the sweep before and after it. */
export interface SimulatedStep {
  readonly before: State;
  readonly question: Question;
  readonly answer: Answer;
  readonly after: State;
  /** When the question was sent; `knew` counts the answers committed by then. */
  readonly sentAt: number;
  readonly knew: number;
}

export interface SweepResult {
  readonly done: Done;
  /** All list requests, including those whose answers were lost in a crash. */
  readonly requests: number;
  /** Ids that were in the list during the whole sweep and are not held after it. */
  readonly lost: readonly bigint[];
  readonly state: State;
}

interface InFlight {
  readonly question: Question;
  readonly answer: Answer;
  readonly sentAt: number;
  readonly knew: number;
}

/** Runs a sweep until the coverage logic says that it is done. */
export function runSweep(server: HiddenServer, memory: Memory, options: SweepOptions = {}): SweepResult {
  const random = createRandom(options.seed ?? 1);
  const startedAt = memory.now;
  const plan: Plan = {
    heldBefore: memory.held.size,
    longestBefore: memory.longest,
    recentFrom: BigInt(Math.floor(startedAt / 1_000)) - 900n,
    seed: options.seed ?? 1,
    ...options.plan,
  };
  let requests = 0;
  let steps = 0;
  let state = begin(plan);
  let inFlight: InFlight[] = [];
  for (;;) {
    const asked = inFlight.map(({ question }) => question);
    const next = inFlight.length < (options.parallel ?? 1) ? ask(state, asked, options.known) : null;
    if (next !== null && 'kind' in next) {
      const present = server.presentThroughout(startedAt, memory.now);
      const lost = present.filter((id) => isIn(plan, id) && !memory.held.has(id));
      if (next.certificate !== 'unproven') markAbsent(memory, next);
      if (plan.rigor !== 'poll') memory.uneven ||= next.capacity.uneven;
      if (plan.rigor !== 'poll') memory.longest = next.capacity.longest;
      return { done: next, requests, lost, state };
    }
    if (next !== null) {
      memory.now += options.pauseMs ?? 100;
      requests++;
      const reply = server.list(toRequest(next), memory.now);
      inFlight.push({ question: next, answer: toAnswer(reply, options.byteBudget), sentAt: memory.now, knew: steps });
      continue;
    }
    if (random.chance(options.crashes ?? 0)) {
      inFlight = [];
      state = restore(state);
      continue;
    }
    const [came] = inFlight.splice(random.between(0, inFlight.length - 1), 1);
    if (came === undefined) throw new Error('The sweep is not done, but no question is in flight.');
    const before = state;
    const answer = commit(memory, came, startedAt, plan.heldBefore ?? 0);
    state = learn(state, came.question, answer);
    steps++;
    options.onStep?.({ before, question: came.question, answer, after: state, sentAt: came.sentAt, knew: came.knew });
  }
}

/**
 * Runs one audit as a running worker does. Returns true when the audit contradicts the certificate, which covers applications submitted
 * before `provenAt`. The reader stores the rows that the audit finds.
 */
export function runAudit(
  server: HiddenServer,
  memory: Memory,
  { provenAt, capacity, random }: { provenAt: number; capacity: KnownCapacity; random: () => number },
): boolean {
  const place = findPlace(memory, random(), auditSize(capacity.count));
  if (place === null) return false;
  const askServer = (question: Question) => {
    memory.now += 100;
    const sentAt = memory.now;
    const answer = toAnswer(server.list(toRequest(question), sentAt));
    const page = commit(memory, { question, answer, sentAt }, provenAt, memory.held.size);
    return page.kind === 'page' ? page : null;
  };
  const { both, lower } = auditQuestions(place, random);
  const pages = [askServer(both), askServer(lower)];
  const isHidden = pages.some((page) =>
    page?.rows.some(({ id, at }) => page.unheld.includes(id) && at !== null && Number(at) * 1_000 < provenAt),
  );
  if (isHidden || !pages[0]) return isHidden;
  const page = { ids: pages[0].rows.map(({ id }) => id), bytes: pages[0].bytes };
  return lackingQuestions(place, page, capacity).some((question) =>
    askServer(question)?.rows.some(({ id }) => id === question.from),
  );
}

/** Chooses the ids to audit as the store does: from a random position on. */
function findPlace(memory: Memory, random: number, size: number): AuditPlace | null {
  const sorted = [...memory.held.keys()].sort((a, b) => (a < b ? -1 : 1));
  const [low, high] = [sorted[0], sorted.at(-1)];
  if (low === undefined || high === undefined) return null;
  const from = low + BigInt(Math.round(Number(high - low) * random));
  const ids = sorted
    .filter((id) => id >= from && !memory.gone.has(id) && !memory.absentSince.has(id))
    .slice(0, size + 2);
  const [first, last] = [ids[0], ids.at(-1)];
  if (first === undefined || last === undefined) return null;
  if (ids.length < 3) return { ids, after: first - 1n, before: last + 1n };
  return { ids: ids.slice(1, -1), after: first, before: last };
}

/** Restores the state from its stored text, as a process does after a crash. */
export function restore(state: State): State {
  return {
    facts: decodeFacts(encode(state.facts)),
    ranges: state.ranges.map((range) => decodeRange(encode(range))),
  };
}

/** Every `stride`th held id that is not gone. A recheck splits its questions at these ids. */
export function knownOf({ held, gone, uneven }: Memory, stride = 1): SplitPoints {
  const sorted = [...held.keys()].filter((id) => !gone.has(id)).sort((a, b) => (a < b ? -1 : 1));
  return { positions: sorted.filter((_, index) => index % stride === stride - 1), stride, uneven };
}

function toRequest({ axis, after, before, since }: Question): ListRequest {
  const seconds = (bound: bigint | null) => (bound === null ? null : Number(bound));
  if (axis === 'date') return { afterId: null, beforeId: null, afterDate: seconds(after), beforeDate: seconds(before) };
  return { afterId: after, beforeId: before, afterDate: seconds(since), beforeDate: null };
}

function toAnswer(reply: ListReply, byteBudget = Number.POSITIVE_INFINITY): Answer {
  if (reply.status === 400 || reply.status === 403) return { kind: 'refused' };
  if (isFailure(reply)) return { kind: 'overflow', rows: [] };
  // Like the product, distributes the bytes of the whole body, including its envelope, over the rows in proportion to their length.
  const readable = reply.rows.filter((row) => !row.unreadable);
  const perByte = reply.bytes / readable.reduce((sum, { bytes }) => sum + bytes, 0);
  const rows = readable.map(({ id, submittedAt, bytes }) => ({
    id,
    at: submittedAt === null ? null : BigInt(Math.floor(submittedAt)),
    bytes: Math.ceil(bytes * perByte),
  }));
  if (reply.bytes > byteBudget) {
    // From an abandoned body the reader uses only the ids.
    const beginning = rows.slice(0, Math.floor((rows.length * byteBudget) / reply.bytes));
    return { kind: 'overflow', rows: beginning.map(({ id }) => ({ id, at: null, bytes: 0 })) };
  }
  const { bytes, echo } = reply;
  const weakEmpty = reply.status !== 200 || reply.body === 'none';
  return {
    kind: 'page',
    rows,
    unreadable: reply.rows.length - readable.length,
    bytes,
    echo,
    weakEmpty,
    cached: (reply.age ?? 0) > 0,
    unheld: [],
    unshown: [],
  };
}

/** Stores the page and adds to the answer which of its ids were new and which expected ids it did not show. */
function commit(
  memory: Memory,
  { question, answer, sentAt }: Pick<InFlight, 'question' | 'answer' | 'sentAt'>,
  sweepStartedAt: number,
  heldBefore: number,
): Answer {
  if (answer.kind !== 'page') return answer;
  const unheld = [...new Set(answer.rows.map((row) => row.id))].filter((id) => !memory.held.has(id));
  const asked = toExpectedIds(question, heldBefore);
  const known =
    memory.gone.size === 0 ? memory.held.values() : memory.held.values().filter(({ id }) => !memory.gone.has(id));
  const unshown = asked === null ? [] : findUnshown(asked, answer.rows, known, { sentAt, sweepStartedAt });
  const fresh = new Set(unheld);
  for (const { id, at } of answer.rows) {
    if (fresh.has(id)) memory.held.set(id, { id, firstSeenAt: memory.now, missingSince: null, submittedAt: at });
  }
  for (const { id } of answer.rows) {
    memory.gone.delete(id);
    memory.absentSince.delete(id);
  }
  return { ...answer, unheld, unshown } satisfies PageAnswer;
}

function markAbsent(memory: Memory, { absent, certificate }: Done): void {
  for (const id of absent) {
    const since = memory.absentSince.get(id);
    if (since === undefined) memory.absentSince.set(id, memory.now);
    else if (certificate === 'proven' && memory.now - since > 86_400_000) memory.gone.add(id);
  }
}

function isIn(plan: Plan, id: bigint): boolean {
  return id >= (plan.from ?? 1n) && (plan.to == null || id <= plan.to);
}
