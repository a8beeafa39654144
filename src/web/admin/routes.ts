// The admin port: probes, metrics, and the status as JSON and as pages. They read through the functions they are given and change
// nothing. They show counts and configured names, never a person. Where a login is set, only the probes answer without it.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { basicAuth } from 'hono/basic-auth';
import { HTTPException } from 'hono/http-exception';
import { auth } from 'hono/utils/basic-auth';
import { toJson } from '../../domain/format.ts';
import type { History } from '../../domain/status/advertiser-status.ts';
import { type Status, toReport } from '../../domain/status/status.ts';
import { Trouble, type Wait } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import type { Finding } from '../../sync/worker/health-checks.ts';
import { type Clients, createGuessLimit, isEqualSecret } from '../limits.ts';
import { createHeaders, type HttpServer, openServer } from '../server.ts';
import type { Metrics } from './metrics.ts';
import { renderNoProofPage, renderProofPage } from './proof-page.ts';
import { renderStatusPage, renderUnknownPage } from './status-page.ts';

export interface AdminOptions extends Clients {
  readonly loadStatus: () => Promise<Status>;
  readonly store: Pick<Store, 'evidence' | 'reports'>;
  /** The dependencies that this process waits for: known even while the database is unavailable. */
  readonly loadOwnWaits: () => readonly Wait[];
  /** Whether this process still makes progress. Never queries a database. */
  readonly loadLiveness: () => readonly Finding[];
  /** Whether database, schema and progress allow this process to work now. */
  readonly loadReadiness: () => Promise<readonly Finding[]>;
  readonly metrics: Metrics;
  /** The settings require one where other machines can reach the port. The password is read on every request, so that it can be rotated. */
  readonly login: { readonly user: string; readonly password: () => string } | null;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Called with unexpected errors; `route` is the pattern and holds nothing of the request. */
  readonly onError: (route: string, error: unknown) => void;
}

/** How long loaded values are cached, so that many viewers do not load the database. */
const ageMs = { status: 2_000, history: 30_000, proof: 10_000 };
/** A readiness probe that takes longer fails. */
const readinessMs = 5_000;

/** Starts listening. Disposing ends open requests at once: they must not delay the shutdown of a worker. */
export async function openAdmin(deps: AdminOptions): Promise<HttpServer> {
  const { host, port, store, metrics, login } = deps;
  const loadStatus = createCache<Status, void>(deps.loadStatus, ageMs.status);
  const loadHistory = createCache<History, void>(() => store.reports.loadHistory(new Date()), ageMs.history);
  const loadProof = createCache(store.evidence.loadCurrentProof, ageMs.proof);
  // Anybody may ask for readiness: those who ask at the same time share one check.
  const loadReadiness = createCache<readonly Finding[], void>(() => loadInTime(deps.loadReadiness), 0);
  const guess = createGuessLimit(deps);
  const isUser = (user: string, password: string, context: Context) =>
    login !== null &&
    guess(context, isEqualSecret(JSON.stringify([user, password]), JSON.stringify([login.user, login.password()])));
  const toUnknownPage = (context: Context, error: unknown) => {
    const since = deps.loadOwnWaits().find(({ dependency }) => dependency === 'database')?.since ?? null;
    return context.html(renderUnknownPage(toReason(error), since), 503);
  };
  /** The named account, or the first one; its proof, if its id is known. */
  const loadAccount = async (asked: string | undefined) => {
    const { advertisers, at } = await loadStatus();
    const account = asked === undefined ? advertisers[0] : advertisers.find(({ name }) => name === asked);
    const advertiserId = account?.advertiserId ?? null;
    return { account, proof: advertiserId === null ? null : await loadProof(advertiserId), at };
  };
  const app = new Hono();
  // This port speaks http; only a proxy in front of it can promise https.
  app.use(createHeaders({ styleSrc: ["'self'"], imgSrc: ["'self'"] }, false));
  if (login === null) app.use(onlyHosts(['localhost', '127.0.0.1', '[::1]', host]));
  // Hono's default writes the error to the console, with any value that the error quotes.
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    deps.onError(context.req.routePath, error);
    return context.text('The request failed; the log says why.', 500);
  });

  app.get('/livez', (context) => toProbe(context, deps.loadLiveness(), true));
  app.get('/readyz', async (context) => {
    const findings = await loadReadiness();
    const given = auth(context.req.raw);
    const mayKnow = login === null || (given !== undefined && isUser(given.username, given.password, context));
    return toProbe(context, findings, mayKnow);
  });

  if (login !== null) app.use(basicAuth({ realm: 'Intake', verifyUser: isUser }));

  // The second function of each `then` answers where loading fails: the database does not answer.
  app.get('/metrics', (context) =>
    loadStatus().then(
      async (status) => context.body(await metrics.render(status), 200, { 'Content-Type': metrics.contentType }),
      // A scrape without accounts would look like a worker that has none.
      (error: unknown) => context.text(`The database does not answer: ${toReason(error)}\n`, 503),
    ),
  );
  app.get('/api/status', (context) =>
    loadStatus().then(
      (status) => context.body(toJson(toReport(status)), 200, { 'Content-Type': 'application/json' }),
      (error: unknown) => {
        const reason = toReason(error);
        return context.json({ error: 'The database does not answer.', reason, waits: deps.loadOwnWaits() }, 503);
      },
    ),
  );
  app.get('/', (context) => {
    const refreshSeconds = context.req.query('refresh') === undefined ? null : 30;
    return Promise.all([loadStatus(), loadHistory()]).then(
      ([status, history]) => context.html(renderStatusPage(status, history, refreshSeconds)),
      (error: unknown) => toUnknownPage(context, error),
    );
  });
  app.get('/proof', (context) =>
    loadAccount(context.req.query('advertiser')).then(
      ({ account, proof, at }) =>
        account && proof
          ? context.html(renderProofPage(account.name, proof, at))
          : context.html(renderNoProofPage(account !== undefined, at), 404),
      (error: unknown) => toUnknownPage(context, error),
    ),
  );
  app.get('/status.css', (context) => context.body(style, 200, { 'Content-Type': 'text/css; charset=utf-8' }));
  app.get('/icon.svg', (context) => context.body(icon, 200, { 'Content-Type': 'image/svg+xml' }));
  return await openServer({ host, port, fetch: app.fetch, setting: 'ADMIN_PORT', closingMs: 0 });
}

const style = readFileSync(new URL('./status.css', import.meta.url), 'utf8');
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#2f6f9f"/><path d="M8 3v6M5 6.5 8 9.5l3-3M3.5 12.5h9" fill="none" stroke="#fff" stroke-width="1.6"/></svg>`;

/** Protects against DNS rebinding: a foreign site may point its own name at this address, so only names of this machine are answered. */
function onlyHosts(hosts: readonly string[]): MiddlewareHandler {
  return async (context, next) => {
    const asked = context.req.header('host')?.replace(/:\d+$/, '').toLowerCase() ?? '';
    if (hosts.includes(asked)) return await next();
    return context.text('This name is not served here.', 421);
  };
}

/** Why the database does not answer: a Trouble's message, with host and port; null for other errors, which may quote a value. */
function toReason(error: unknown): string | null {
  return error instanceof Trouble ? error.message : null;
}

/** One object per check. The detail of a failed check may name hosts, so only users who may see the status get it. */
function toProbe(context: Context, findings: readonly Finding[], mayKnow: boolean): Response {
  const ok = findings.every((finding) => finding.ok);
  const checks = findings.map(({ check, ok, detail }) => (mayKnow ? { check, ok, detail } : { check, ok }));
  return context.json({ ok, checks }, ok ? 200 : 503);
}

/** The findings; one failed finding where the checks throw or take too long. */
async function loadInTime(load: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  const failed = (detail: string) => [{ check: 'answer', ok: false, detail }];
  const late = failed(`no answer within ${readinessMs / 1_000} s`);
  const checked = load().catch(() => failed('the checks could not be run'));
  return await Promise.race([checked, sleep(readinessMs, late, { ref: false })]);
}

/**
 * Caches loaded values: at most one load of a key at a time, and at most one per `ageMs`. A failure is not cached. Keys are ids of
 * configured accounts, so there are few.
 */
function createCache<T, K>(load: (key: K) => Promise<T>, ageMs: number): (key: K) => Promise<T> {
  const kept = new Map<K, Promise<T>>();
  return (key) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const drop = () => kept.delete(key);
    const value = load(key);
    kept.set(key, value);
    value.then(() => setTimeout(drop, ageMs).unref(), drop);
    return value;
  };
}
