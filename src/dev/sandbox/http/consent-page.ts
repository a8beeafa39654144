// The consent page of the sandbox, for people and browser tests. hono's html escapes the values.

import { html, raw } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';
import type { Person } from '../people/people.ts';

type ConsentPage = HtmlEscapedString | Promise<HtmlEscapedString>;

/** Asks the signed-in candidate for consent on behalf of the employer; `number` identifies the request. */
export function renderConsent(person: Person, employer: string, number: string): ConsentPage {
  return toPage(
    'Share your profile?',
    html`<p>You are signed in as <strong>${person.firstName} ${person.lastName}</strong>.</p>
<p><strong>${employer}</strong> would like to see your profile and your resume, to fill in an application for you.</p>
<form method="post" action="consent">
<input type="hidden" name="number" value="${number}">
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Deny</button>
</form>`,
  );
}

/** The page for an invalid authorization request. */
export function renderRefusal(): ConsentPage {
  return toPage(
    'This request is not accepted',
    html`<p>The application that sent you here asked for something unknown.</p>`,
  );
}

function toPage(title: string, body: ConsentPage): ConsentPage {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${raw(style)}</style>
</head>
<body>
<main>
<p class="board">Sandbox job board</p>
<h1>${title}</h1>
${body}
</main>
</body>
</html>`;
}

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 0; }
main { box-sizing: border-box; max-width: 26rem; width: calc(100% - 2rem); padding: 2rem; border: 1px solid #8886; border-radius: 12px; }
h1 { font-size: 1.4rem; margin-top: 0; }
.board { color: GrayText; margin: 0; }
button { font: inherit; padding: .5rem 1.4rem; border-radius: 8px; border: 1px solid #8886; cursor: pointer; }
button[value=allow] { background: #1f5fbf; border-color: #1f5fbf; color: white; }
`;
