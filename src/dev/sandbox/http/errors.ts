// Error answers. Spec silent: error statuses, error bodies and error codes.

import type { Choices } from '../behaviour/choices.ts';
import { escapeXml } from '../wire/render-xml.ts';
import type { WireAnswer } from './transport.ts';

/** An error in the account's format. */
export function toError(
  choices: Choices,
  status: number,
  message: string,
  headers: Record<string, string> = {},
): WireAnswer {
  const bodies = {
    json: ['application/json; charset=utf-8', JSON.stringify({ Message: message })],
    xml: [
      'application/xml; charset=utf-8',
      `<?xml version="1.0" encoding="utf-8"?><Error><Message>${escapeXml(message)}</Message></Error>`,
    ],
    html: ['text/html; charset=utf-8', toHtmlPage('Error', message)],
    text: ['text/plain; charset=utf-8', message],
  } as const;
  if (choices.errorBody === 'empty' || status === 204) return { status, headers, body: null };
  const [type, text] = bodies[choices.errorBody];
  return { status, headers: { 'Content-Type': type, ...headers }, body: [Buffer.from(text)] };
}

/** An HTML login page with status 200, in place of an answer. */
export function toLoginPage(): WireAnswer {
  const body = Buffer.from(toHtmlPage('Sign in', 'Your session has ended. Please sign in again.'));
  return { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8' }, body: [body] };
}

/** Status 429, with one of the forms of Retry-After. */
export function toThrottled(choices: Choices, form: Choices['retryAfter'], seconds: number, now: number): WireAnswer {
  const forms: Readonly<Record<Choices['retryAfter'], string | null>> = {
    seconds: String(seconds),
    date: new Date(now + seconds * 1000).toUTCString(),
    absent: null,
    zero: '0',
    negative: '-5',
    day: '86400',
  };
  const value = forms[form];
  return toError(choices, 429, 'Too many requests.', value === null ? {} : { 'Retry-After': value });
}

function toHtmlPage(title: string, text: string): string {
  return `<!DOCTYPE html><html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1><p>${escapeXml(text)}</p></body></html>`;
}
