// The control API under /sandbox: over HTTP and JSON, it offers everything that a test can do to a sandbox in its own process.
// It needs no credential, so it accepts requests from this machine only, and only with a Host header of this machine. The latter blocks
// DNS rebinding, where a foreign page resolves its own name to 127.0.0.1.

import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { z } from 'zod';
import type { Account } from '../account/account.ts';
import { choicesForm } from '../behaviour/choices.ts';
import { type FaultPlan, faultForm } from '../behaviour/faults.ts';
import { type ApplicationPlan, idForm, planForm } from '../people/plan.ts';
import type { RequestLog } from './request-log.ts';

/** What the control API acts on. */
export interface ControlOptions {
  readonly accounts: readonly Account[];
  find(advertiserId: bigint): Account;
  addAdvertiser(wanted: z.output<typeof advertiserForm>): Account;
  readonly log: RequestLog;
}

const advertiserForm = z
  .strictObject({
    advertiserId: idForm.optional(),
    credential: z.string().min(1).optional(),
    applications: z.int().nonnegative().optional(),
    choices: choicesForm.optional(),
    firstId: idForm.optional(),
  })
  .transform(
    (wanted) =>
      Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)) as OnlyGiven<typeof wanted>,
  );
type OnlyGiven<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

const additionForm = z.strictObject({
  count: z.int().positive().max(1_000_000).optional(),
  applications: z.array(planForm).optional(),
  /** Assigns ids and dates now; the applications are listed after /sandbox/release. */
  held: z.boolean().default(false),
});

/** The routes under /sandbox; `?advertiser=ID` selects the account, by default the first one. */
export function createControl({
  accounts,
  find,
  addAdvertiser,
  log,
}: ControlOptions): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const accountOf = (advertiser: string | undefined): Account => {
    const account = advertiser === undefined ? accounts[0] : find(idForm.parse(advertiser));
    if (!account) throw new RangeError('There is no advertiser.');
    return account;
  };

  app.use(async (context, next) => {
    const { remoteAddress = '' } = context.env.incoming.socket;
    if (isThisMachine(remoteAddress) && isThisMachine(toName(context.req.header('host') ?? ''))) return next();
    return context.json({ error: 'The control API answers to this machine only, under localhost or 127.0.0.1.' }, 403);
  });
  app.onError((error, context) => {
    if (error instanceof z.ZodError) return context.json({ error: z.prettifyError(error) }, 400);
    if (error instanceof RangeError || error instanceof SyntaxError) return context.json({ error: error.message }, 400);
    throw error;
  });

  app.get('/advertisers', (context) => answer(context, accounts.map(toSummary)));
  app.post('/advertisers', async (context) =>
    answer(context, toSummary(addAdvertiser(advertiserForm.parse(await context.req.json())))),
  );

  app.get('/choices', (context) => answer(context, accountOf(context.req.query('advertiser')).choices));
  app.patch('/choices', async (context) => {
    const account = accountOf(context.req.query('advertiser'));
    account.choose(choicesForm.parse(await context.req.json()));
    return answer(context, account.choices);
  });

  app.get('/faults', (context) => answer(context, accountOf(context.req.query('advertiser')).faults()));
  app.post('/faults', async (context) => {
    const plan: FaultPlan = faultForm.parse(await context.req.json());
    return answer(context, { number: accountOf(context.req.query('advertiser')).fault(plan) });
  });
  app.delete('/faults/:number?', (context) => {
    const number = context.req.param('number');
    accountOf(context.req.query('advertiser')).clearFaults(number === undefined ? undefined : Number(number));
    return answer(context, {});
  });

  app.post('/applications', async (context) => {
    const { count, applications, held } = additionForm.parse(await context.req.json());
    const account = accountOf(context.req.query('advertiser'));
    const wanted: number | ApplicationPlan[] = applications ?? count ?? 1;
    return answer(context, { ids: held ? account.holdBack(wanted) : account.add(wanted) });
  });
  app.post('/release', async (context) => {
    const { ids } = z.strictObject({ ids: z.array(idForm).optional() }).parse(await context.req.json());
    return answer(context, { ids: accountOf(context.req.query('advertiser')).release(ids) });
  });
  app.patch('/applications/:id', async (context) => {
    accountOf(context.req.query('advertiser')).change(
      idForm.parse(context.req.param('id')),
      planForm.parse(await context.req.json()),
    );
    return answer(context, {});
  });
  app.delete('/applications/:id', (context) => {
    accountOf(context.req.query('advertiser')).remove(idForm.parse(context.req.param('id')));
    return answer(context, {});
  });
  app.post('/live', async (context) => {
    const { perMinute } = z.strictObject({ perMinute: z.number().nonnegative() }).parse(await context.req.json());
    accountOf(context.req.query('advertiser')).startArrivals(perMinute);
    return answer(context, { perMinute });
  });

  // One JSON object per line: the truth about 200,000 applications is too large for a single value.
  app.get('/truth', (context) => {
    const rows = accountOf(context.req.query('advertiser')).truth();
    context.header('Content-Type', 'application/x-ndjson; charset=utf-8');
    return stream(context, async (lines) => {
      for (const row of rows) await lines.write(`${toJson(row)}\n`);
    });
  });

  app.get('/requests', (context) => {
    const after = Number(context.req.query('after') ?? 0);
    return answer(
      context,
      log.entries().filter((entry) => entry.number > after),
    );
  });
  app.delete('/requests', (context) => {
    log.clear();
    return answer(context, {});
  });
  return app;
}

function toSummary(account: Account): object {
  return { advertiserId: account.advertiserId, credential: account.credential, applications: account.size };
}

/** Writes ids as text, since they may exceed the exact range of a JSON number. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, member) => (typeof member === 'bigint' ? String(member) : member));
}

function answer(
  context: { body(text: string, status: 200, headers: Record<string, string>): Response },
  value: unknown,
): Response {
  return context.body(toJson(value), 200, { 'Content-Type': 'application/json; charset=utf-8' });
}

/** The name or address in a Host header. */
function toName(host: string): string {
  return host
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
}

function isThisMachine(name: string): boolean {
  return name === 'localhost' || name === '::1' || /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}
