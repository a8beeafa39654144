// Carries one question of a sweep to the source and brings the answer back in the sweep's own words, with whether the source has
// understood it: the filters that an answer repeats, and mixtures of them that are refused.
import type { Page } from '../domain/application.ts';
import { dateSlackSeconds } from '../domain/next-question.ts';
import type { Answer, Question, Row } from '../domain/question.ts';
import { Trouble } from '../domain/trouble.ts';
import type { ListFilters, Source } from '../source/client.ts';

/** An answer as the sweep's reasoning sees it; what depends on stored rows is added when the page is compared with them. */
export type Heard =
  | {
      readonly kind: 'page';
      readonly page: Page;
      readonly answer: Omit<Answer & { kind: 'page' }, 'unheld' | 'missing'>;
    }
  | { readonly kind: 'overflow' | 'refused'; readonly answer: Exclude<Answer, { kind: 'page' }> };

/** Asks. A mixture of filters that is refused, while one filter alone is answered, is an answer too. */
export async function hear(source: Source, question: Question, signal: AbortSignal): Promise<Heard> {
  const filters = toFilters(question);
  try {
    const isOne = question.from !== null && question.from === question.to && question.axis === 'id';
    const listed = await source.list(filters, signal, isOne ? 'one' : 'many');
    if (listed.kind === 'overflow') {
      return { kind: 'overflow', answer: { kind: 'overflow', rows: listed.ids.map((id) => ({ id, at: null })) } };
    }
    const { page } = listed;
    const { bytes, weakEmpty } = page;
    return {
      kind: 'page',
      page,
      answer: { kind: 'page', rows: toRows(page), bytes, weakEmpty, echo: toEcho(filters, page.echo) },
    };
  } catch (error) {
    if (question.after === null || question.before === null || !isRefusal(error)) throw error;
    // Refused for its mixture, or refused as a whole? One filter alone tells.
    await source.list(toFilters({ ...question, before: null }), signal);
    return { kind: 'refused', answer: { kind: 'refused' } };
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Trouble && (error.status === 400 || error.status === 403 || error.status === 422);
}

function toFilters({ axis, after, before }: Question): ListFilters {
  if (axis === 'id') {
    return { ...(after !== null && { afterId: after }), ...(before !== null && { beforeId: before }) };
  }
  return {
    ...(after !== null && { afterDate: Number(after) * 1_000 }),
    ...(before !== null && { beforeDate: Number(before) * 1_000 }),
  };
}

function toRows(page: Page): Row[] {
  const submitted = new Map(page.applications.map((a) => [a.id, a.submittedAt]));
  return page.ids.map((id) => {
    const ms = submitted.get(id) ?? null;
    return { id, at: ms === null ? null : BigInt(Math.floor(ms / 1_000)) };
  });
}

/** We send text without a zone: what is repeated may be read in any. */
const zoneSlackMs = Number(dateSlackSeconds) * 1_000;

/** Whether the filters that the answer repeats are those that were sent. */
function toEcho(sent: ListFilters, echo: Page['echo']): 'matches' | 'absent' | 'differs' {
  const pairs = [
    compare(sent.afterId, echo.afterId, (a, b) => a === b),
    compare(sent.beforeId, echo.beforeId, (a, b) => a === b),
    compare(sent.afterDate, echo.afterDate, (a, b) => Math.abs(a - b) <= zoneSlackMs),
    compare(sent.beforeDate, echo.beforeDate, (a, b) => Math.abs(a - b) <= zoneSlackMs),
  ];
  return pairs.includes('differs') ? 'differs' : pairs.includes('absent') ? 'absent' : 'matches';
}

function compare<T>(
  sent: T | undefined,
  echoed: 'absent' | 'unreadable' | null | T,
  isSame: (a: T, b: T) => boolean,
): 'matches' | 'absent' | 'differs' {
  if (sent === undefined) return echoed === null || typeof echoed === 'string' ? 'matches' : 'differs';
  if (typeof echoed === 'string') return 'absent';
  return echoed !== null && isSame(sent, echoed) ? 'matches' : 'differs';
}
