// The sandbox's own page: what the sandbox assumes where the API's description is silent, and how to change it.
// hono's html escapes the values.

import { html, raw } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';
import type { Account } from '../account/account.ts';
import { type Choices, choices, describeOptions, unplayable } from '../behaviour/choices.ts';
import { faultForm } from '../behaviour/faults.ts';

/** The page at `/`; each choice shows its current value for the first account. */
export function renderAssumptions(accounts: readonly Account[]): HtmlEscapedString | Promise<HtmlEscapedString> {
  const [first] = accounts;
  const names = Object.keys(choices) as (keyof Choices)[];
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sandbox: what it assumes</title>
<style>${raw(style)}</style>
</head>
<body>
<h1>What this sandbox assumes</h1>
<p>An invented job board that speaks the advertiser API under <code>/v1</code> and the candidate side under <code>/api/iam/oauth2</code> and <code>/v2</code>: <a href="/sandbox/openapi.json">OpenAPI document</a>.
The people in it do not exist. Where the API's description is silent, the sandbox makes a choice; every choice can be changed while it runs.</p>
<h2>Advertisers</h2>
<table>
<thead><tr><th>Advertiser</th><th>Applications</th></tr></thead>
<tbody>${accounts.slice(0, 50).map((account) => html`<tr><td>${String(account.advertiserId)}</td><td>${account.size}</td></tr>`)}</tbody>
</table>
<h2>Choices of the first advertiser</h2>
<table>
<thead><tr><th>Choice</th><th>Now</th><th>Options</th><th>Meaning</th><th>Silence</th></tr></thead>
<tbody>${names.map(
    (
      name,
    ) => html`<tr><th scope="row"><code>${name}</code></th><td><strong>${JSON.stringify(first?.choices[name])}</strong></td>
<td>${describeOptions(name).join(', ')}</td><td>${choices[name].meaning}</td><td>${choices[name].silence}</td></tr>
`,
  )}</tbody>
</table>
<p>The numbers are those in docs/source-api.md. Silences without a choice:</p>
<ul>${Object.entries(unplayable).map(([silence, reason]) => html`<li>${silence}: ${reason}</li>`)}</ul>
<h2>Faults</h2>
<table>
<thead><tr><th>Fault</th><th>What happens</th><th>Parameters</th></tr></thead>
<tbody>${faultForm.options.map(
    (form) => html`<tr><th scope="row"><code>${form.shape.kind.value}</code></th><td>${form.description}</td>
<td>${Object.keys(form.shape)
      .filter((name) => name !== 'kind')
      .join(', ')}</td></tr>
`,
  )}</tbody>
</table>
<h2>Control API</h2>
<p>JSON over HTTP, from this machine only. <code>?advertiser=ID</code> selects the account; the default is the first one.</p>
<table>
<thead><tr><th>Request</th><th>Body</th><th>Effect</th></tr></thead>
<tbody>${controls.map(
    ([
      request,
      body,
      effect,
    ]) => html`<tr><td><code>${request}</code></td><td><code>${body}</code></td><td>${effect}</td></tr>
`,
  )}</tbody>
</table>
</body>
</html>`;
}

const controls = [
  ['GET /sandbox/choices', '', 'All choices and their values.'],
  ['PATCH /sandbox/choices', '{"order": "descending", "pageCap": 7}', 'Changes choices.'],
  ['GET /sandbox/faults', '', 'The faults, and how often each has happened.'],
  ['POST /sandbox/faults', '{"kind": "fail", "on": "list", "times": 3}', 'Adds a fault; returns its number.'],
  ['DELETE /sandbox/faults/NUMBER', '', 'Removes a fault; without a number, all.'],
  [
    'POST /sandbox/applications',
    '{"count": 5} or {"applications": [{"firstName": "Ann"}], "held": true}',
    'Adds applications; held ones are listed only after their release.',
  ],
  ['POST /sandbox/release', '{} or {"ids": ["100007"]}', 'Lists the applications that were held back.'],
  [
    'PATCH /sandbox/applications/ID',
    '{"email": "new@example.com", "attach": [{"kind": "resume", "version": 2}]}',
    'Changes an application.',
  ],
  ['DELETE /sandbox/applications/ID', '', 'Removes an application.'],
  ['POST /sandbox/live', '{"perMinute": 6}', 'Adds applications continuously; 0 stops.'],
  ['GET /sandbox/truth', '', 'What a perfect reader would have stored, one JSON object per line.'],
  ['GET /sandbox/requests?after=NUMBER', '', 'The requests received; DELETE clears them.'],
  [
    'GET /sandbox/advertisers',
    '',
    'The accounts; POST adds one: {"advertiserId": "7", "credential": "secret", "applications": 10}.',
  ],
] as const;

const style = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8886; padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; font-weight: normal; }
thead th { font-weight: 600; }
`;
