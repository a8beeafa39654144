// The page that a candidate sees when a prefill cannot continue. The texts are fixed: the page repeats nothing from the request.
// hono's html escapes what is inserted.

import { html, raw } from 'hono/html';

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

export type ErrorNotice = keyof typeof notices;

/** The page and its HTTP status. `detail` is for the developers of the careers site. */
export function renderNotice(notice: ErrorNotice, nonce: string, detail = '') {
  const { status, title, text } = notices[notice];
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
  return { status, page };
}

const style = `
:root { color-scheme: light dark; }
body { font: 17px/1.6 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 0; }
main { max-width: 30rem; padding: 2rem; }
h1 { font-size: 1.5rem; line-height: 1.3; }
.detail { color: GrayText; font-size: .85rem; }
`;
