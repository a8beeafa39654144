// Estimates what a backfill would cost from two probe requests. Nothing is stored.
import type { Source } from '../../source/client.ts';
import type { ReadRange } from '../../store/sweeps/sweeps.ts';

interface EstimateRequest {
  readonly range: ReadRange;
  /** Applications of the range that are already stored; known for a range of ids only. */
  readonly held: number;
  readonly requestsPerSecond: number | null;
  readonly parallel: number;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Requests per full page of a first sweep that proves; measured with the simulator on ordered, capped lists. */
const requestsPerPage = 3;
const recentMs = 4 * 86_400_000;

/** Requests the beginning of the range and the newest applications, and estimates from their density; null where that says nothing. */
export async function estimate(source: Source, request: EstimateRequest) {
  const { range, signal, requestsPerSecond } = request;
  const startedAt = performance.now();
  const first = await source.list(toFilters(range), signal);
  const recent = await source.list({ afterDate: request.now - recentMs }, signal);
  const latencyMs = (performance.now() - startedAt) / 2;

  const ids = first.kind === 'page' ? first.page.ids : first.ids;
  const newest = recent.kind === 'page' ? recent.page.ids : recent.ids;
  const pageSize = Math.max(1, ids.length, newest.length);
  const applications = toCount(range, ids, newest, request.held);
  if (applications === null) return { applications, requests: null, durationMs: null, pageSize };
  const pages = Math.ceil(applications / pageSize);
  const requests = pages <= 1 ? 4 : requestsPerPage * pages;
  const perRequestMs = Math.max(latencyMs / request.parallel, requestsPerSecond ? 1_000 / requestsPerSecond : 0);
  return { applications, requests, durationMs: requests * perRequestMs, pageSize };
}

function toFilters({ axis, low, high }: ReadRange) {
  if (axis === 'id') return { afterId: low - 1n, ...(high !== null && { beforeId: high + 1n }) };
  return { afterDate: Number(low - 1n) * 1_000, ...(high !== null && { beforeDate: Number(high + 1n) * 1_000 }) };
}

/** Density of the page times the width of the range; the stored count is a lower bound. By date, only an empty page allows an estimate. */
function toCount(range: ReadRange, ids: readonly bigint[], newest: readonly bigint[], held: number): number | null {
  if (ids.length === 0) return held;
  if (range.axis === 'date') return null;
  const low = ids.reduce((a, b) => (a < b ? a : b));
  const high = ids.reduce((a, b) => (a > b ? a : b));
  const end = range.high ?? newest.reduce((a, b) => (a > b ? a : b), high);
  if (high === low) return Math.max(held, ids.length);
  // The rest of the range lies beyond the last row of the page: above it in an ascending list, below it in a descending one.
  const falls = (ids[0] ?? low) > (ids.at(-1) ?? low);
  const beyond = falls ? Number(low - range.low) : Number(end - high);
  const perId = ids.length / (Number(high - low) + 1);
  return Math.max(held, Math.round(ids.length + Math.max(0, beyond) * perId));
}
