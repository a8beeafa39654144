// The pages of the example: a job, its form, a thank-you. hono's html escapes what it is given.

import { html, raw } from 'hono/html';

type Page = ReturnType<typeof html>;

/** What the form asks for. */
export interface Applicant {
  readonly firstName?: string;
  readonly lastName?: string;
  readonly email?: string;
  readonly phone?: string;
  readonly lastJob?: string;
  readonly skills?: string;
}

const errors: Readonly<Record<string, string>> = {
  denied: 'You did not share your profile. That is fine: please fill in the form by hand.',
  expired: 'That took too long, or was done before. You can start again, or fill in the form by hand.',
  failed: 'Your profile could not be fetched right now. You can try again, or fill in the form by hand.',
};

const fields: readonly [keyof Applicant, string][] = [
  ['firstName', 'First name'],
  ['lastName', 'Last name'],
  ['email', 'E-mail'],
  ['phone', 'Phone'],
  ['lastJob', 'Latest job'],
  ['skills', 'Skills'],
];

/** The job ad with the button. */
export function renderJob(job: { readonly title: string }, startUrl: string): Page {
  return toPage(
    job.title,
    html`<p>Four nights a week, a small team, and a good coffee machine.</p>
<p><a class="button" id="prefill" href="${startUrl}">Apply with your profile</a> <a href="/apply">Apply by hand</a></p>`,
  );
}

/** The form, filled in as far as anything is known. */
export function renderForm(
  job: { readonly title: string },
  startUrl: string,
  applicant: Applicant,
  resumeName: string | null,
  error: string | null,
): Page {
  const told = error === null ? undefined : (errors[error] ?? errors.failed);
  return toPage(
    `Apply: ${job.title}`,
    html`${told === undefined ? '' : html`<p role="status" id="notice">${told}</p>`}
<p><a class="button" id="prefill" href="${startUrl}">Fill in with your profile</a></p>
<form method="post" action="/apply">
${fields.map(
  ([name, label]) => html`<label>${label} <input name="${name}" value="${applicant[name] ?? ''}"></label>
`,
)}
<p id="resume">${resumeName === null ? 'No resume attached yet.' : html`Attached: <strong>${resumeName}</strong>`}</p>
<button>Send application</button>
</form>`,
  );
}

/** The end of it. */
export function renderThanks(firstName: string, resumeBytes: number): Page {
  const attached = resumeBytes === 0 ? 'without a resume' : `with a resume of ${resumeBytes} bytes`;
  return toPage('Thank you', html`<p id="thanks">Thank you, ${firstName}: your application is here, ${attached}.</p>`);
}

function toPage(title: string, body: Page): Page {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${raw(style)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>`;
}

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 34rem; padding: 0 1rem; }
label { display: grid; margin: .7rem 0; gap: .2rem; }
input { font: inherit; padding: .4rem; border: 1px solid #8888; border-radius: 6px; }
.button, button { font: inherit; display: inline-block; padding: .5rem 1.2rem; border: 0; border-radius: 8px; background: #1f5fbf; color: white; text-decoration: none; cursor: pointer; }
#notice { padding: .6rem 1rem; border-left: 4px solid #b7791f; background: #b7791f22; }
`;
