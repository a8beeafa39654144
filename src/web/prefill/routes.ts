// The public routes of the candidate side. No page is shown at an address that carries a code or a state: the callback always
// answers 303. Nothing is cached, no part of a request is logged, and every path ends on a page that a candidate understands.

import type { HttpBindings } from '@hono/node-server';
import { create as toContentDisposition } from 'content-disposition';
import { type Context, Hono } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { bodyLimit } from 'hono/body-limit';
import { getCookie, setCookie } from 'hono/cookie';
import { html, raw } from 'hono/html';
import { HTTPException } from 'hono/http-exception';
import { NONCE, type SecureHeadersVariables } from 'hono/secure-headers';
import { z } from 'zod';
import { callbackTimeoutMs, stateLifetimeMs } from '../../domain/prefill.ts';
import {
  beginPrefill,
  createSecret,
  findAccount,
  finishPrefill,
  openResume,
  type PrefillDeps,
  redeemPrefill,
} from '../../sync/prefill.ts';
import { type Clients, createGuessLimit, createRateLimit, isEqualSecret } from '../limits.ts';
import { createHeaders } from '../server.ts';
import { parseAdvertiserId, parseCallback, parseResumeToken, parseStart, toResumeToken } from './request.ts';

export interface PrefillRoutesOptions extends Clients {
  readonly deps: PrefillDeps;
  /** The public address of the callback; decides whether cookies are secure, and is the base of resume links. */
  readonly redirectUri: string;
  readonly sessionSecret: () => string;
  /** Called with unexpected errors; `route` is the pattern and holds no parameter. */
  readonly onError: (route: string, error: unknown) => void;
}

/** `accounts` are those whose key a request has. */
type Env = { Bindings: HttpBindings; Variables: SecureHeadersVariables & { accounts: readonly string[] } };

export function createPrefillRoutes(options: PrefillRoutesOptions): Hono<Env> {
  const { deps, redirectUri, sessionSecret, now } = options;
  // Headers are set before the base path applies, so that every answer of this port carries them.
  const port = new Hono<Env>();
  const app = port.basePath('/prefill');
  const isSecure = redirectUri.startsWith('https:');
  const cookie = createBindingCookie(isSecure);

  port.use(createHeaders({ styleSrc: [NONCE] }, isSecure), async (context, next) => {
    // GET has effects on these routes; a HEAD must not cause them.
    if (context.req.method === 'HEAD') context.res = context.body(null, 405);
    else await next();
  });
  const refuse = (context: Context) => showNotice(context, 'busy');
  const limit = (burst: number, refillMs: number) => createRateLimit(options, burst, refillMs, refuse);
  const guess = createGuessLimit(options);
  // A candidate needs three requests; a whole office may share one address.
  app.use('/start', limit(60, 2_000));
  app.use('/callback', limit(60, 2_000));
  app.use('/resume/*', limit(240, 500));

  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    options.onError(`${context.req.method} ${context.req.routePath}`, error);
    if (context.req.method === 'POST') return context.json({ error: 'temporarily unavailable, please try again' }, 503);
    return showNotice(context, 'away');
  });
  app.notFound((context) => showNotice(context, 'nowhere'));

  app.get('/start', async (context) => {
    const query = new URL(context.req.url).searchParams;
    const advertiserId = parseAdvertiserId(query);
    const account = advertiserId && (await findAccount(deps, advertiserId));
    if (!account) return showNotice(context, 'incomplete', 'Not usable: advertiser_id.');
    const request = parseStart(query, advertiserId, account.returnUrls);
    if ('wrong' in request) return showNotice(context, 'incomplete', `Not usable: ${request.wrong.join(', ')}.`);
    const binding = cookie.ensure(context);
    return context.redirect(await beginPrefill(deps, account, { request, binding }), 303);
  });

  app.get('/callback', async (context) => {
    const callback = parseCallback(new URL(context.req.url).search);
    const binding = cookie.read(context);
    const returnUrl =
      callback === null || binding === null
        ? null
        : await finishPrefill(deps, { ...callback, binding, signal: AbortSignal.timeout(callbackTimeoutMs) });
    return context.redirect(returnUrl ?? new URL('stopped', redirectUri).href, 303);
  });

  app.get('/stopped', (context) => showNotice(context, 'stopped'));

  app.post(
    '/redeem',
    bearerAuth({
      verifyToken(token, context) {
        // All keys are compared, so that the time says nothing about them.
        const fitting = [...deps.accounts]
          .filter(([, { bearerToken }]) => isEqualSecret(token, bearerToken()))
          .map(([name]) => name);
        (context as Context<Env>).set('accounts', fitting);
        return guess(context, fitting.length > 0);
      },
    }),
    bodyLimit({ maxSize: 4_096, onError: (context) => context.json({ error: 'too large' }, 413) }),
    async (context) => {
      const { data } = redeemForm.safeParse(await context.req.json().catch(() => null));
      if (data === undefined) return context.json({ error: 'a JSON object with a handle is expected' }, 400);
      const redeemed = await redeemPrefill(deps, data.handle, context.get('accounts'));
      if (redeemed === null) return context.json({ error: 'unknown, used or expired handle' }, 404);
      const token = toResumeToken(redeemed, sessionSecret(), now());
      const url = new URL(`resume/${token}`, redirectUri).href;
      const resume = redeemed.resume && { url, ...redeemed.resume };
      // The profile is passed on as text: parsing it would round large numbers.
      const body = `{"profile":${redeemed.profile},"resume":${JSON.stringify(resume)}}`;
      return context.body(body, 200, { 'Content-Type': 'application/json; charset=utf-8' });
    },
  );

  app.get('/resume/:token', async (context) => {
    const key = parseResumeToken(context.req.param('token'), sessionSecret(), now());
    const resume = key && (await openResume(deps, key, context.req.raw.signal));
    if (!resume) return showNotice(context, 'stopped');
    context.header('Content-Type', 'application/octet-stream');
    context.header('Content-Disposition', toContentDisposition(resume.fileName));
    context.header('Content-Length', String(resume.sizeBytes));
    // An error cuts the connection: Content-Length was sent, so the client sees that bytes are missing.
    return context.body(ReadableStream.from(noteErrors(resume.bytes, (error) => options.onError(resumeRoute, error))));
  });
  return app;
}

const resumeRoute = 'GET /prefill/resume/:token';

async function* noteErrors(bytes: AsyncIterable<Uint8Array>, note: (error: unknown) => void) {
  try {
    yield* bytes;
  } catch (error) {
    note(error);
    throw error;
  }
}

const redeemForm = z.object({ handle: z.string().max(200) });

/** The cookie that identifies a browser, shared by its tabs. `__Host-` stops sibling domains from setting it; it requires https. */
function createBindingCookie(isSecure: boolean) {
  const name = 'prefill';
  const prefix = isSecure ? ('host' as const) : undefined;
  const read = (context: Context) => /^[\w-]{43}$/.exec(getCookie(context, name, prefix) ?? '')?.[0] ?? null;
  return {
    read,
    ensure(context: Context): string {
      const binding = read(context) ?? createSecret();
      // Lax: the browser must send it when the source redirects back.
      const shape = { path: '/', httpOnly: true, sameSite: 'Lax', maxAge: stateLifetimeMs / 1000 } as const;
      setCookie(context, name, binding, { ...shape, ...(prefix && { prefix, secure: true }) });
      return binding;
    },
  };
}

/** The pages that a candidate sees when a prefill cannot continue. They repeat nothing from the request but names of parameters. */
const notices = {
  stopped: {
    status: 410,
    title: 'This step is already over',
    text: 'It was finished before, took longer than ten minutes, or began in another browser. Nothing was lost: please go back to the application form and start again from there.',
  },
  incomplete: {
    status: 400,
    title: 'This link is not complete',
    text: 'Please go back to the application form and try again. You can always fill it in by hand.',
  },
  nowhere: {
    status: 404,
    title: 'There is nothing here',
    text: 'Please go back to the application form and start again from there.',
  },
  busy: {
    status: 429,
    title: 'One moment, please',
    text: 'There were many requests from your network. Please wait a minute and try again.',
  },
  away: {
    status: 503,
    title: 'This does not work right now',
    text: 'Please go back to the application form and try again in a few minutes, or fill it in by hand.',
  },
} as const;

/** Shows it with its HTTP status. `detail` is for the developers of the careers site. */
function showNotice(context: Context, notice: keyof typeof notices, detail = '') {
  const { status, title, text } = notices[notice];
  const nonce = context.get('secureHeadersNonce') ?? '';
  const page = html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>${title}</title>
<style nonce="${nonce}">${raw(style)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${text}</p>
${detail === '' ? '' : html`<p class="detail">${detail}</p>`}
</main>
</body>
</html>`;
  return context.html(page, status);
}

const style = `
:root { color-scheme: light dark; }
body { font: 17px/1.6 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 0; }
main { max-width: 30rem; padding: 2rem; }
h1 { font-size: 1.5rem; line-height: 1.3; }
.detail { color: GrayText; font-size: .85rem; }
`;
