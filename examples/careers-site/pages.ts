// The pages of the example: a job ad, its form and a thank-you page. hono's html escapes the values. The pages work without scripts, with a
// keyboard, with a screen reader and on a phone.

import { html, raw } from 'hono/html';
import type { FieldName, Visit } from './visits.ts';

type Page = ReturnType<typeof html>;

interface Field {
  readonly name: FieldName;
  readonly label: string;
  readonly type: 'text' | 'email' | 'tel';
  readonly required: boolean;
  /** The HTML autocomplete token. */
  readonly autocomplete: string;
}

export const fields: readonly Field[] = [
  { name: 'firstName', label: 'First name', type: 'text', required: true, autocomplete: 'given-name' },
  { name: 'lastName', label: 'Last name', type: 'text', required: true, autocomplete: 'family-name' },
  { name: 'email', label: 'E-mail address', type: 'email', required: true, autocomplete: 'email' },
  { name: 'phone', label: 'Phone', type: 'tel', required: false, autocomplete: 'tel' },
  { name: 'lastJob', label: 'Latest job', type: 'text', required: false, autocomplete: 'organization-title' },
  { name: 'skills', label: 'Skills', type: 'text', required: false, autocomplete: 'off' },
];

const failed = 'Your profile could not be fetched right now. You can try again, or fill in the form by hand.';
const filledIn = 'Filled in from your profile. Please check it before you send it.';
const notices = new Map([
  ['denied', 'You did not share your profile. That is fine: please fill in the form by hand.'],
  ['expired', 'That took too long, or was done before. You can start again, or fill in the form by hand.'],
]);

interface Job {
  readonly title: string;
}

/** The job ad with the button. */
export function renderJob(employer: string, job: Job, nonce: string): Page {
  return toPage(
    { employer, title: job.title, nonce },
    html`<p>Four nights a week, a small team, and a good coffee machine.</p>
<p class="actions"><a class="button" id="prefill" href="/start">Apply with your profile</a> <a href="/apply">Apply by hand</a></p>`,
  );
}

export interface FormContent {
  readonly employer: string;
  readonly job: Job;
  readonly visit: Visit;
  /** Why there is no profile; the value of prefill_error. */
  readonly error?: string | undefined;
  readonly nonce: string;
}

/** The form, filled in with what is known. */
export function renderForm({ employer, job, visit, error, nonce }: FormContent): Page {
  const { applicant, resume, problems, isFilledIn } = visit;
  // The candidate came back twice (back button or second tab); the first time brought the profile.
  const isRepeated = error === 'expired' && isFilledIn;
  const problem = error === undefined || isRepeated ? undefined : (notices.get(error) ?? failed);
  const notice = problem ?? (isFilledIn ? filledIn : undefined);
  const count = Object.keys(problems).length;
  return toPage(
    { employer, title: `Apply: ${job.title}`, nonce },
    html`${notice === undefined ? '' : html`<p role="status" id="notice">${notice}</p>`}
${count === 0 ? '' : html`<p role="alert" id="problems">Not sent yet: ${count === 1 ? 'one field needs' : `${count} fields need`} your attention.</p>`}
<p class="actions"><a class="button${isFilledIn ? ' quiet' : ''}" id="prefill" href="/start">Fill in with your profile</a></p>
<form id="application" method="post" action="/apply" enctype="multipart/form-data">
${fields.map((field) => renderField(field, applicant[field.name] ?? '', problems[field.name]))}
<div class="field">
<label for="resumeFile">Resume <span class="hint">PDF, Word, ODT, RTF or text, up to 5 MB</span></label>
<p id="resume">${resume === null ? 'No resume attached yet.' : html`Attached: <strong>${resume.fileName}</strong>. Choose a file to replace it.`}</p>
<input id="resumeFile" name="resumeFile" type="file" accept=".pdf,.doc,.docx,.odt,.rtf,.txt" ${describe('resumeFile', problems.resumeFile)}>
${renderProblem('resumeFile', problems.resumeFile)}
</div>
<button>Send application</button>
</form>
<form method="post" action="/clear"><button id="clear" class="quiet">Clear the form</button></form>`,
  );
}

function renderField({ name, label, type, required, autocomplete }: Field, value: string, problem: string | undefined) {
  return html`<div class="field">
<label for="${name}">${label}${required ? '' : html` <span class="hint">optional</span>`}</label>
<input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" maxlength="500" ${required ? 'required' : ''} ${describe(name, problem)}>
${renderProblem(name, problem)}
</div>
`;
}

/** Links a message to its field for screen readers. */
function describe(name: string, problem: string | undefined) {
  return problem === undefined ? '' : html`aria-invalid="true" aria-describedby="${name}-problem"`;
}

function renderProblem(name: string, problem: string | undefined) {
  return problem === undefined ? '' : html`<p class="problem" id="${name}-problem">${problem}</p>`;
}

/** The thank-you page. */
export function renderThanks(employer: string, sent: NonNullable<Visit['sent']>, nonce: string): Page {
  const attached = sent.resumeBytes === 0 ? 'without a resume' : `with a resume of ${sent.resumeBytes} bytes`;
  return toPage(
    { employer, title: 'Thank you', nonce },
    html`<p id="thanks">Thank you, ${sent.firstName}: your application is here, ${attached}.</p>
<p><a class="button quiet" href="/">Back to the job</a></p>`,
  );
}

function toPage(head: { readonly employer: string; readonly title: string; readonly nonce: string }, body: Page): Page {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>${head.title} · ${head.employer}</title>
<style nonce="${head.nonce}">${raw(style)}</style>
</head>
<body>
<main>
<p class="employer">${head.employer}</p>
<h1>${head.title}</h1>
${body}
</main>
</body>
</html>`;
}

const style = `
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 36rem; padding: 2rem 1rem; overflow-wrap: anywhere; }
h1 { line-height: 1.2; margin-top: 0; }
.employer { color: GrayText; margin: 0; }
.actions { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; }
.field { display: grid; margin: 1rem 0; gap: .25rem; }
.field p { margin: 0; }
.hint { color: GrayText; font-size: .9em; }
input { font: inherit; width: 100%; padding: .6rem; border: 1px solid #888a; border-radius: 6px; }
input[aria-invalid] { border-color: #c53030; }
.problem, #problems { color: light-dark(#b02020, #ff9b9b); }
.button, button { font: inherit; display: inline-block; min-height: 2.75rem; padding: .6rem 1.2rem; border: 0; border-radius: 8px; background: #1f5fbf; color: white; text-decoration: none; cursor: pointer; }
.quiet { background: none; color: inherit; border: 1px solid #888a; margin-top: 1rem; }
:focus-visible { outline: 3px solid #1f5fbf88; outline-offset: 2px; }
#notice, #problems { padding: .6rem 1rem; border-left: 4px solid #b7791f; background: #b7791f22; }
`;
