// A careers site as small as it can be and still complete: a job, a button, and a form that Intake fills in.
// Four steps, marked below; everything else is an ordinary web form. Copy what you need.

import { randomUUID } from 'node:crypto';
import { Hono } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { type Applicant, renderForm, renderJob, renderThanks } from './pages.ts';

export interface CareersSiteOptions {
  /** Where candidates' browsers reach this site. */
  readonly siteUrl: string;
  /** Where they reach Intake. */
  readonly intakeUrl: string;
  /** PREFILL_KEY of Intake; stays on this server. */
  readonly prefillKey: string;
  readonly advertiserId: string;
}

interface Session {
  readonly applicant: Applicant;
  readonly resume: { readonly fileName: string; readonly bytes: Uint8Array } | null;
}

const job = { title: 'Night nurse', postalCode: '3000', path: '/' };

/** The site. Sessions live in memory, which is enough for an example. */
export function createCareersSite({ siteUrl, intakeUrl, prefillKey, advertiserId }: CareersSiteOptions): Hono {
  const app = new Hono();
  const sessions = new Map<string, Session>();

  // 1. The button leads to Intake, with what the form is and where the browser comes back to.
  const startUrl = `${intakeUrl}/prefill/start?${new URLSearchParams({
    advertiser_id: advertiserId,
    form_url: `${siteUrl}/apply`,
    return_url: `${siteUrl}/apply`,
    position_title: job.title,
    position_uri: `${siteUrl}${job.path}`,
    country_code: 'AU',
    postal_code: job.postalCode,
  })}`;

  app.get('/', (context) => context.html(renderJob(job, startUrl)));

  app.get('/apply', async (context) => {
    const { prefill: handle, prefill_error: error } = context.req.query();
    if (handle !== undefined) {
      // 2. The browser is back with a handle, which is exchanged on the server: the profile never stands in an address.
      const session = await redeem(handle);
      if (session !== null) {
        const number = randomUUID();
        sessions.set(number, session);
        setCookie(context, 'application', number, { httpOnly: true, sameSite: 'Lax', path: '/' });
      }
      // 3. On to a clean address, so that a reload does not redeem twice.
      return context.redirect(session === null ? '/apply?prefill_error=expired' : '/apply', 303);
    }
    const session = sessions.get(getCookie(context, 'application') ?? '');
    const resume = session?.resume?.fileName ?? null;
    return context.html(renderForm(job, startUrl, session?.applicant ?? {}, resume, error ?? null));
  });

  app.post('/apply', async (context) => {
    const form = await context.req.parseBody();
    const session = sessions.get(getCookie(context, 'application') ?? '');
    sessions.delete(getCookie(context, 'application') ?? '');
    return context.html(renderThanks(String(form.firstName ?? ''), session?.resume?.bytes.length ?? 0));
  });

  async function redeem(handle: string): Promise<Session | null> {
    const answer = await fetch(`${intakeUrl}/prefill/redeem`, {
      method: 'POST',
      headers: { authorization: `Bearer ${prefillKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ handle }),
    });
    if (!answer.ok) return null;
    const { profile, resume } = (await answer.json()) as Redeemed;
    return { applicant: toApplicant(profile), resume: resume && (await download(resume)) };
  }
  return app;
}

interface Redeemed {
  readonly profile: Record<string, unknown>;
  readonly resume: { readonly url: string; readonly fileName: string } | null;
}

/** 4. The resume is fetched within minutes, by the link that came with the profile. */
async function download({ url, fileName }: NonNullable<Redeemed['resume']>): Promise<Session['resume']> {
  const answer = await fetch(url);
  return answer.ok ? { fileName, bytes: new Uint8Array(await answer.arrayBuffer()) } : null;
}

/** The members of a profile are the source's own: take what is there. */
function toApplicant(profile: Record<string, unknown>): Applicant {
  const known = (profile.applicantInfo ?? profile) as Record<string, unknown>;
  const text = (name: string) => (typeof known[name] === 'string' ? known[name] : '');
  const [last] = Array.isArray(known.workHistory) ? known.workHistory : [];
  return {
    firstName: text('firstName'),
    lastName: text('lastName'),
    email: text('emailAddress'),
    phone: text('phoneNumber'),
    lastJob: typeof last?.jobTitle === 'string' ? last.jobTitle : '',
    skills: Array.isArray(known.skills) ? known.skills.join(', ') : '',
  };
}
