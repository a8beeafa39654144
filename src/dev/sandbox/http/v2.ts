// The candidate side of the API behind a bearer token: the profile for a form, and the resume. Every field of a request is checked
// against the description.

import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import type { Account } from '../account/account.ts';
import { renderProfile, toResumeId } from '../account/candidates.ts';
import type { Choices } from '../behaviour/choices.ts';
import type { CandidateRoute } from '../behaviour/faults.ts';
import { toDisposition } from './downloads.ts';
import { toError } from './errors.ts';
import type { Grant, Grants } from './grants.ts';
import { toMishap } from './mishap.ts';
import type { RequestLog } from './request-log.ts';
import { sendAnswer, type WireAnswer } from './transport.ts';

export interface V2Options {
  readonly grants: Grants;
  /** The account whose choices apply to requests without a valid token. */
  readonly first: Account;
  readonly log: RequestLog;
}

type V2Context = Context<{ Bindings: HttpBindings }>;

/** The routes under /v2. */
export function createV2({ grants, first, log }: V2Options): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const send = async (
    context: V2Context,
    route: CandidateRoute,
    toAnswer: (grant: Grant) => WireAnswer | Promise<WireAnswer>,
  ) => {
    // Spec: `Authorization: Bearer <ACCESS_TOKEN>`.
    const [, token = ''] = /^Bearer (.+)$/.exec(context.req.header('authorization') ?? '') ?? [];
    const grant = grants.find(token);
    const account = grant?.account ?? first;
    const entry = log.begin(context.req.raw, grant?.account.advertiserId ?? null);
    const faults = account.armed.take({ route, applicationId: null });
    entry.faults = faults.map((fault) => fault.kind);
    const refused = () => toError(account.choices, Number(account.choices.tokenRefused), 'The token is not accepted.');
    const answer = toMishap(account, context.req.url, faults) ?? (grant ? await toAnswer(grant) : refused());
    entry.status = answer.status;
    await sendAnswer(context.env.outgoing, answer, 'contentLength', faults);
    return RESPONSE_ALREADY_SENT;
  };

  app.post('/applications/prefilled', (context) =>
    send(context, 'prefilled', async ({ account, candidate }) => {
      const { choices } = account;
      if (!accepts(context, 'application/json')) return toError(choices, 406, 'Only application/json is served.');
      const type = context.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
      if (type !== 'application/json') return toError(choices, 415, 'Only application/json is read.');
      const request = readRequest(await context.req.text(), choices);
      if (request === null) return toError(choices, 400, 'The request cannot be read.');
      // Spec: AdvertiserID, the same one the client uses in the authorization grant request.
      if (request.advertiserId !== String(account.advertiserId)) {
        return toError(choices, 403, 'The candidate allowed another advertiser.');
      }
      if (choices.profile === 'noContent') return { status: 204, headers: {}, body: null };
      const profile = renderProfile(candidate, choices, account.host());
      if (profile === null) return toError(choices, 404, 'There is no profile.');
      return { status: 200, headers: { 'Content-Type': 'application/json' }, body: [Buffer.from(profile)] };
    }),
  );

  app.get('/resumes/:id', (context) =>
    send(context, 'candidateResume', ({ account, candidate }) => {
      const { choices } = account;
      if (!accepts(context, 'application/octet-stream')) return toError(choices, 406, 'Only bytes are served.');
      if (context.req.param('id') !== toResumeId(candidate, choices)) {
        return toError(choices, 404, 'There is no such resume.');
      }
      // Spec: Resume (version 2); transport.ts adds the length.
      const disposition = toDisposition(candidate.resume.fileName, choices);
      return {
        status: 200,
        headers: {
          'Content-Type': 'application/octet-stream',
          ...(disposition !== null && { 'Content-Disposition': disposition }),
        },
        body: candidate.resume.open(),
      };
    }),
  );
  return app;
}

function accepts(context: V2Context, type: string): boolean {
  const named = (context.req.header('accept') ?? '').split(',').map((one) => one.split(';')[0]?.trim().toLowerCase());
  return named.includes(type);
}

const filled = z.string().min(1);
/** Spec: Prefill request body. */
const requestForm = z.strictObject({
  applicationFormUrl: z.url(),
  advertiserId: z.string().regex(/^\d+$/),
  positionTitle: filled.optional(),
  positionUri: z.string().refine(URL.canParse).optional(),
  countryCode: z
    .string()
    .regex(/^[A-Za-z]{2}$/)
    .optional(),
  postalCode: filled.optional(),
});

function readRequest(text: string, choices: Choices): z.output<typeof requestForm> | null {
  try {
    const sent: Record<string, unknown> = JSON.parse(text);
    const members = Object.entries(sent).filter(([, value]) => choices.emptyFields === 'refuse400' || value !== '');
    return requestForm.safeParse(Object.fromEntries(members)).data ?? null;
  } catch {
    return null;
  }
}
