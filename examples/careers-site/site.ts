// A minimal, complete careers site: a job ad, a button, and a form that Intake fills in.
// The four steps are numbered below; everything else is an ordinary web form. Copy what you need.
//
// A computer may be shared, so the data of a candidate belong to one visit. Every click on the button starts a new visit, and the data are
// deleted after a denial, after sending, and after half an hour.

import { randomBytes } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { csrf } from 'hono/csrf';
import { NONCE, type SecureHeadersVariables, secureHeaders } from 'hono/secure-headers';
import { fields, renderForm, renderJob, renderThanks } from './pages.ts';
import { type Applicant, createVisits, type FieldName, type Problems, type Resume, type Visit } from './visits.ts';

export interface CareersSiteOptions {
  /** The address of this site for candidates' browsers. */
  readonly siteUrl: string;
  /** The address of Intake for candidates' browsers. */
  readonly intakeUrl: string;
  /** Intake's PREFILL_KEY; it never leaves this server. */
  readonly prefillKey: string;
  readonly advertiserId: string;
  /** The employer's name. */
  readonly employer: string;
}

type Env = { Variables: SecureHeadersVariables };

const job = { title: 'Night nurse', postalCode: '3000', path: '/' };
const largestResumeBytes = 5_000_000;
/** Tabs of one browser that may be on their way at once. */
const mostFlows = 20;
/** The timeout of requests to other servers while a candidate waits. */
const waitMs = 15_000;

/** Creates the site. Visits are kept in memory, which is enough for an example. */
export function createCareersSite(options: CareersSiteOptions): Hono<Env> {
  const { siteUrl, intakeUrl, prefillKey, advertiserId, employer } = options;
  const app = new Hono<Env>();
  const visits = createVisits();
  const isSecure = siteUrl.startsWith('https:');
  const cookie = { httpOnly: true, sameSite: 'Lax', path: '/', secure: isSecure } as const;
  const cookieName = isSecure ? '__Host-visit' : 'visit';

  const findVisit = (context: Context<Env>): Visit | null => visits.find(getCookie(context, cookieName));
  /** Deletes the data of the current visit and starts a new one with a new name: the old name no longer gives access to anything. */
  const beginVisit = (context: Context<Env>, known: Partial<Visit> = {}): Visit => {
    visits.end(getCookie(context, cookieName));
    const { name, visit } = visits.begin(known);
    setCookie(context, cookieName, name, cookie);
    return visit;
  };
  const endVisit = (context: Context<Env>): void => {
    visits.end(getCookie(context, cookieName));
    deleteCookie(context, cookieName, cookie);
  };
  const nonceOf = (context: Context<Env>) => context.get('secureHeadersNonce') ?? '';

  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        styleSrc: [NONCE],
        imgSrc: ['data:'],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
      },
      // Sends no referrer to other sites; this site needs the Origin of its own forms for the CSRF check.
      referrerPolicy: 'same-origin',
      xFrameOptions: 'DENY',
      strictTransportSecurity: isSecure && 'max-age=31536000',
    }),
    async (context, next) => {
      await next();
      // A candidate's data must not stay in a cache, nor be visible to the next person via the back button.
      context.header('Cache-Control', 'no-store');
    },
    // Prevents forms on other sites from sending an application in a candidate's name.
    csrf({ origin: new URL(siteUrl).origin }),
  );

  app.get('/', (context) => {
    // Starts a new visit, since the previous person has left.
    beginVisit(context, { begun: findVisit(context)?.begun ?? [] });
    return context.html(renderJob(employer, job, nonceOf(context)));
  });

  // 1. The button leads to Intake, with the details of the form and the address to return to. Its last part is known to this visit only.
  app.get('/start', (context) => {
    const flow = randomBytes(32).toString('base64url');
    beginVisit(context, { begun: [...(findVisit(context)?.begun ?? []), flow].slice(-mostFlows) });
    const start = new URL(`${intakeUrl}/prefill/start`);
    start.search = new URLSearchParams({
      advertiser_id: advertiserId,
      form_url: `${siteUrl}/apply`,
      return_url: `${siteUrl}/apply/${flow}`,
      position_title: job.title,
      position_uri: `${siteUrl}${job.path}`,
      country_code: 'AU',
      postal_code: job.postalCode,
    }).toString();
    return context.redirect(start.href, 303);
  });

  app.get('/apply/:flow', async (context) => {
    const { prefill: handle = '', prefill_error: error } = context.req.query();
    // A handle is accepted only in the visit that began its flow, so that a link cannot lead a person into somebody else's profile.
    const flow = context.req.param('flow');
    const begun = findVisit(context)?.begun ?? [];
    const told = (['denied', 'expired', 'failed'] as const).find((one) => one === error);
    // 2. The browser returns with a handle. This server exchanges it for the profile, so the profile never appears in a URL.
    const known = told ?? (begun.includes(flow) ? await redeem(handle) : 'expired');
    if (typeof known !== 'string') {
      beginVisit(context, { ...known, isFilledIn: true, begun: begun.filter((one) => one !== flow) });
    }
    // 3. Redirects to an address without the handle, so that a reload does not redeem it again.
    return context.redirect(typeof known === 'string' ? `/apply?prefill_error=${known}` : '/apply', 303);
  });

  app.get('/apply', (context) => {
    const { prefill: handle, prefill_error: error } = context.req.query();
    if (handle !== undefined) return context.redirect('/apply?prefill_error=expired', 303);
    const visit = findVisit(context);
    const isOver = visit === null || error === 'denied';
    const known = isOver ? beginVisit(context, { begun: visit?.begun ?? [] }) : visit;
    return context.html(renderForm({ employer, job, visit: known, error, nonce: nonceOf(context) }));
  });

  app.post('/clear', (context) => {
    beginVisit(context);
    return context.redirect('/apply', 303);
  });

  app.post(
    '/apply',
    bodyLimit({
      maxSize: largestResumeBytes + 100_000,
      onError: (context) => refuse(context as Context<Env>, { problems: tooLarge }),
    }),
    async (context) => {
      const form = await context.req.parseBody();
      const applicant = readApplicant(form);
      const attached = await readResume(form.resumeFile);
      const resume = attached ?? findVisit(context)?.resume ?? null;
      const problems = check(applicant, attached);
      if (Object.keys(problems).length > 0) {
        return refuse(context, { applicant, resume: problems.resumeFile ? null : resume, problems });
      }
      // A real site stores the application here.
      const sent = { firstName: applicant.firstName ?? '', resumeBytes: resume?.bytes.length ?? 0 };
      beginVisit(context, { sent });
      return context.redirect('/thanks', 303);
    },
  );

  app.get('/thanks', (context) => {
    const sent = findVisit(context)?.sent;
    endVisit(context);
    return sent ? context.html(renderThanks(employer, sent, nonceOf(context))) : context.redirect('/', 303);
  });

  /**
   * Keeps what was typed and attached, so that the candidate has to correct only what is wrong. Redirects to the form's own address, so
   * that a reload or the back button does not send the form again.
   */
  function refuse(context: Context<Env>, found: Pick<Visit, 'problems'> & Partial<Visit>) {
    beginVisit(context, { ...findVisit(context), isFilledIn: false, ...found });
    return context.redirect('/apply', 303);
  }

  async function redeem(handle: string): Promise<Pick<Visit, 'applicant' | 'resume'> | 'expired' | 'failed'> {
    try {
      const answer = await fetch(`${intakeUrl}/prefill/redeem`, {
        method: 'POST',
        headers: { authorization: `Bearer ${prefillKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ handle }),
        signal: AbortSignal.timeout(waitMs),
      });
      if (answer.status === 404) return 'expired';
      if (!answer.ok) return 'failed';
      const { profile, resume } = (await answer.json()) as Redeemed;
      return { applicant: toApplicant(profile), resume: resume && (await download(resume)) };
    } catch {
      return 'failed';
    }
  }
  return app;
}

interface Redeemed {
  readonly profile: Record<string, unknown>;
  readonly resume: { readonly url: string; readonly fileName: string } | null;
}

/** 4. Downloads the resume by the link in the answer, which expires within minutes. If that fails, the form is still filled in. */
async function download({ url, fileName }: NonNullable<Redeemed['resume']>): Promise<Resume | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(waitMs) });
    return answer.ok ? { fileName, bytes: new Uint8Array(await answer.arrayBuffer()) } : null;
  } catch {
    return null;
  }
}

/** The source defines the members of a profile, so any of them may be absent. */
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

type Form = Readonly<Record<string, unknown>>;

function readApplicant(form: Form): Applicant {
  const read = (name: FieldName) => (typeof form[name] === 'string' ? form[name].trim().slice(0, 500) : '');
  return Object.fromEntries(fields.map(({ name }) => [name, read(name)]));
}

async function readResume(file: unknown): Promise<Resume | null> {
  // A browser sends a file without a name when none was chosen.
  if (!(file instanceof File) || file.name === '') return null;
  return { fileName: file.name.slice(-200), bytes: new Uint8Array(await file.arrayBuffer()) };
}

const tooLarge: Problems = { resumeFile: 'This file is larger than 5 MB. Please choose a smaller one.' };

/** Returns a message for each invalid field. The browser checks as well, but a server must not rely on it. */
function check(applicant: Applicant, resume: Resume | null): Problems {
  const missing = fields.filter(({ name, required }) => required && !applicant[name]);
  const { email } = applicant;
  return {
    ...Object.fromEntries(missing.map(({ name, label }) => [name, `Please enter your ${label.toLowerCase()}.`])),
    ...(email && !/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email) && { email: 'Please enter a whole e-mail address.' }),
    ...(resume?.bytes.length === 0 && { resumeFile: 'This file is empty. Please choose another one.' }),
    ...(resume &&
      !/\.(?:pdf|docx?|odt|rtf|txt)$/i.test(resume.fileName) && {
        resumeFile: 'Please attach a PDF, Word, ODT, RTF or text file.',
      }),
    ...((resume?.bytes.length ?? 0) > largestResumeBytes && tooLarge),
  };
}
