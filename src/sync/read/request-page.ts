// Sends one question of a sweep to the source and translates the answer for the sweep. The result says whether the source understood the
// question: whether it echoes the filters that were sent, and whether it refused their combination.
import type { Echo, Page } from '../../domain/application.ts';
import type { Answer, ListedRow, Question } from '../../domain/coverage/question.ts';
import { dateSlackSeconds } from '../../domain/coverage/sweep-state.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { ListFilters, Source } from '../../source/client.ts';

/** An answer for the sweep's reasoning. The fields that depend on stored rows are added when the page is compared with them. */
export type Heard =
  | {
      readonly kind: 'page';
      readonly page: Page;
      readonly answer: Omit<Answer & { kind: 'page' }, 'unheld' | 'unshown'>;
    }
  | { readonly kind: 'overflow' | 'refused'; readonly answer: Exclude<Answer, { kind: 'page' }> };

/** Sends the question. A refused combination of filters, or a refused date filter, counts as an answer if one id filter alone is served. */
export async function requestPage(source: Source, question: Question, signal: AbortSignal): Promise<Heard> {
  const filters = toFilters(question);
  try {
    const isOne = question.from !== null && question.from === question.to && question.axis === 'id';
    const listed = await source.list(filters, signal, isOne ? 'one' : 'many');
    if (listed.kind === 'overflow') {
      const rows = listed.ids.map((id) => ({ id, at: null, bytes: 0 }));
      return { kind: 'overflow', answer: { kind: 'overflow', rows } };
    }
    const { page } = listed;
    const { bytes, weakEmpty, cached } = page;
    return {
      kind: 'page',
      page,
      answer: {
        kind: 'page',
        rows: toRows(page),
        unreadable: page.rejects.length,
        bytes,
        weakEmpty,
        cached,
        echo: toEcho(filters, page.echo),
      },
    };
  } catch (error) {
    if (isOneIdFilter(question) || !isRefusal(error, question)) throw error;
    // A request with one id filter shows whether the source refuses these filters or every request.
    await source.list(toOneIdFilter(question), signal);
    return { kind: 'refused', answer: { kind: 'refused' } };
  }
}

function isOneIdFilter({ axis, after, before, since }: Question): boolean {
  return axis === 'id' && since === null && (after === null || before === null);
}

function toOneIdFilter({ axis, after, before }: Question): ListFilters {
  if (axis === 'date') return { afterId: 0n };
  return after === null ? { ...(before !== null && { beforeId: before }) } : { afterId: after };
}

/** A 401 counts as a refusal of the filters only on the date axis, where no proof depends on it. */
function isRefusal(error: unknown, { axis }: Question): boolean {
  if (!(error instanceof Trouble)) return false;
  return [400, 403, 422].includes(error.status ?? 0) || (axis === 'date' && error.status === 401);
}

function toFilters({ axis, after, before, since }: Question): ListFilters {
  if (axis === 'id') {
    return {
      ...(after !== null && { afterId: after }),
      ...(before !== null && { beforeId: before }),
      ...(since !== null && { afterDate: Number(since) * 1_000 }),
    };
  }
  return {
    ...(after !== null && { afterDate: Number(after) * 1_000 }),
    ...(before !== null && { beforeDate: Number(before) * 1_000 }),
  };
}

/** The rows of a page. The bytes of the page are divided among the rows in proportion to the length of their stored text. */
function toRows(page: Page): ListedRow[] {
  const byId = new Map(page.applications.map((a) => [a.id, a]));
  const kept = page.ids.reduce((sum, id) => sum + (byId.get(id)?.raw.length ?? 0), 0);
  const perKept = kept === 0 ? 0 : page.bytes / kept;
  return page.ids.map((id) => {
    const { submittedAt = null, raw = '' } = byId.get(id) ?? {};
    const at = submittedAt === null ? null : BigInt(Math.floor(submittedAt / 1_000));
    return { id, at, bytes: Math.ceil(raw.length * perKept) };
  });
}

/** Dates are sent without a time zone, so the source may echo them in any zone. */
const zoneSlackMs = Number(dateSlackSeconds) * 1_000;

/** Whether the filters that the answer echoes are those that were sent. */
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
  echoed: Echo<T>,
  isSame: (a: T, b: T) => boolean,
): 'matches' | 'absent' | 'differs' {
  if (sent === undefined) return echoed === null || typeof echoed === 'string' ? 'matches' : 'differs';
  if (typeof echoed === 'string') return 'absent';
  return echoed !== null && isSame(sent, echoed) ? 'matches' : 'differs';
}
