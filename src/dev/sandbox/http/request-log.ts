// Records the requests to the sandbox and their statuses, so that tests can count them. Keeps the last 50,000.

/** One request to the API, without its credential. */
export interface RequestEntry {
  /** Counts from 1 over all requests. */
  readonly number: number;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly accept: string | null;
  /** Whether the credential is valid; `advertiserId` is then its account. */
  readonly authorized: boolean;
  readonly advertiserId: bigint | null;
  status: number;
  faults: readonly string[];
}

export type RequestLog = ReturnType<typeof createRequestLog>;

const capacity = 50_000;

export function createRequestLog(now: () => number) {
  let entries: RequestEntry[] = [];
  let count = 0;
  return {
    begin(request: Request, advertiserId: bigint | null): RequestEntry {
      count += 1;
      const url = new URL(request.url);
      const entry: RequestEntry = {
        number: count,
        at: now(),
        method: request.method,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        accept: request.headers.get('accept'),
        authorized: advertiserId !== null,
        advertiserId,
        status: 0,
        faults: [],
      };
      entries.push(entry);
      // Trimmed by half, and rarely, so that the cost per request stays constant.
      if (entries.length > capacity * 2) entries = entries.slice(-capacity);
      return entry;
    },
    entries: (): RequestEntry[] => entries.slice(-capacity),
    clear(): void {
      entries = [];
    },
  };
}
