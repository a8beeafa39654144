// A candidate in a real Chromium goes from the example careers site to the sandbox's consent page and back.
import { once } from 'node:events';
import { createAdaptorServer } from '@hono/node-server';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { createCareersSite } from '../../examples/careers-site/site.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { openBrowser } from '../support/prefill/browser.ts';
import { openPrefillStage, type PrefillStage, prefillKey } from '../support/prefill/prefill-stage.ts';
import { findFreePort } from '../support/servers/free-port.ts';

let browser: Browser & AsyncDisposable;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser[Symbol.asyncDispose]());

interface Scene extends AsyncDisposable {
  readonly stage: PrefillStage;
  readonly siteUrl: string;
  readonly context: BrowserContext;
  readonly page: Page;
  /** Every URL that any tab requested, with the Referer of the request. */
  readonly asked: { readonly url: string; readonly referer: string }[];
}

async function openScene(database: TestDatabase): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  const port = await findFreePort();
  // The site and Intake's routes have different host names, so that neither receives the other's cookies.
  const siteUrl = `http://localhost:${port}`;
  const stage = stack.use(
    await openPrefillStage(database, { choices: { consent: 'ask' }, env: { PREFILL_RETURN_URLS: `${siteUrl}/apply` } }),
  );
  const site = createCareersSite({
    siteUrl,
    intakeUrl: stage.urls[0] ?? '',
    prefillKey,
    advertiserId: String(stage.sandbox.advertiserId),
    employer: 'Harbour Health',
  });
  const server = createAdaptorServer({ fetch: site.fetch });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  stack.defer(async () => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    await once(server.close(), 'close');
  });
  const context = await browser.newContext();
  stack.defer(() => context.close());
  const asked: Scene['asked'] = [];
  context.on('request', (request) => {
    asked.push({ url: request.url(), referer: request.headers().referer ?? '' });
  });
  const page = await context.newPage();
  return { stage, siteUrl, context, page, asked, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Turns off the browser's validation, so that the server validates the form. */
const unchecked = `document.querySelector('#application').noValidate = true`;

const readField = (page: Page, name: string) => page.inputValue(`input[name=${name}]`);

const attach = (page: Page, name: string, mimeType: string, buffer: Buffer) =>
  page.setInputFiles('#resumeFile', { name, mimeType, buffer });

/** Goes from the job ad to the source's consent page. */
async function begin(page: Page, siteUrl: string): Promise<void> {
  await page.goto(siteUrl);
  await page.click('#prefill');
  await page.waitForSelector('button[value=allow]');
}

/** Allows there, and is led to the form. */
async function allow(page: Page, siteUrl: string): Promise<void> {
  await page.click('button[value=allow]');
  await page.waitForURL(`${siteUrl}/apply`);
}

describe('a candidate who applies with a profile', () => {
  test('allows, and sees the form filled in and the resume attached', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl, stage } = scene;
    await begin(page, siteUrl);
    await allow(page, siteUrl);
    const { person, resume } = stage.sandbox.grants()[0]?.candidate ?? {};
    expect(await readField(page, 'firstName')).toBe(person?.firstName);
    expect(await readField(page, 'lastName')).toBe(person?.lastName);
    expect(await readField(page, 'email')).toBe(person?.email);
    expect(await readField(page, 'phone')).toBe(person?.phone);
    expect(await page.textContent('#resume')).toContain(resume?.fileName);
    expect(await page.textContent('#notice')).toContain('Filled in from your profile');
    await page.reload();
    expect(await readField(page, 'firstName')).toBe(person?.firstName);
    await page.click('form button');
    expect(await page.textContent('#thanks')).toContain(`with a resume of ${resume?.sizeBytes} bytes`);
    expectNothingLeaked(scene);
  });

  test('goes back and allows again: led to the form, and nothing is used twice', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl, stage } = scene;
    await begin(page, siteUrl);
    await allow(page, siteUrl);
    const { person } = stage.sandbox.grants()[0]?.candidate ?? {};
    await page.goBack();
    await page.waitForSelector('button[value=allow]');
    expect(await page.textContent('strong')).toBe(`${person?.firstName} ${person?.lastName}`);
    await page.click('button[value=allow]');
    await page.waitForURL(`${siteUrl}/apply?prefill_error=expired`);
    expect(await page.textContent('#notice')).toContain('Filled in from your profile');
    expect(await readField(page, 'firstName')).toBe(person?.firstName);
    expect(stage.sandbox.requests().filter(({ path }) => path.endsWith('/token'))).toHaveLength(1);
  });
});

test('a computer of several people shows nothing of the one before', async ({ database }) => {
  await using scene = await openScene(database);
  const { page, siteUrl } = scene;
  const fill = async () => {
    await begin(page, siteUrl);
    await allow(page, siteUrl);
    expect(await readField(page, 'firstName')).not.toBe('');
  };
  const expectEmpty = async () => {
    for (const name of ['firstName', 'lastName', 'email', 'phone', 'lastJob', 'skills']) {
      expect(await readField(page, name), name).toBe('');
    }
    expect(await page.textContent('#resume')).toContain('No resume');
  };
  await fill();
  await page.click('#prefill');
  await page.click('button[value=deny]');
  await page.waitForURL(`${siteUrl}/apply?prefill_error=denied`);
  expect(await page.textContent('#notice')).toContain('That is fine');
  await expectEmpty();
  await page.goto(`${siteUrl}/apply`);
  await expectEmpty();

  await fill();
  await page.goto(siteUrl);
  await page.click('text=Apply by hand');
  await expectEmpty();

  await fill();
  await page.click('#clear');
  await page.waitForURL(`${siteUrl}/apply`);
  await expectEmpty();
  await page.goBack();
  await expectEmpty();
});

describe('a candidate who applies by hand', () => {
  const readMessage = (page: Page, name: string) => page.textContent(`#${name}-problem`);

  test('attaches a resume, and it is sent', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl } = scene;
    await page.goto(`${siteUrl}/apply`);
    await page.fill('#firstName', 'Ada <b>');
    await page.fill('#lastName', 'Byron');
    await page.fill('#email', 'ada@example.com');
    await attach(page, 'ada.pdf', 'application/pdf', Buffer.from('%PDF-1'));
    await page.click('#application button');
    await page.waitForURL(`${siteUrl}/thanks`);
    expect(await page.textContent('#thanks')).toBe(
      'Thank you, Ada <b>: your application is here, with a resume of 6 bytes.',
    );
    await page.reload();
    expect(page.url()).toBe(`${siteUrl}/`);
    await page.goto(`${siteUrl}/apply`);
    expect(await readField(page, 'firstName')).toBe('');
  });

  test('is told what is missing, by the browser and by the server, and keeps what was typed', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl } = scene;
    await page.goto(`${siteUrl}/apply`);
    await page.click('#application button');
    expect(page.url()).toBe(`${siteUrl}/apply`);
    expect(await page.locator('#firstName:invalid').count()).toBe(1);

    const sendUnchecked = async () => {
      await page.evaluate(unchecked);
      const [answer] = await Promise.all([
        page.waitForResponse(`${siteUrl}/apply`),
        page.waitForEvent('load'),
        page.click('#application button'),
      ]);
      return answer.status();
    };
    await page.fill('#email', 'ada at example');
    await page.fill('#phone', '0491 570 006');
    await attach(page, 'ada.txt', 'text/plain', Buffer.from('nurse'));
    expect(await sendUnchecked()).toBe(303);
    expect(await page.textContent('#problems')).toContain('3 fields need');
    expect(await readMessage(page, 'firstName')).toBe('Please enter your first name.');
    expect(await readMessage(page, 'lastName')).toBe('Please enter your last name.');
    expect(await readMessage(page, 'email')).toBe('Please enter a whole e-mail address.');
    expect(await page.getAttribute('#firstName', 'aria-describedby')).toBe('firstName-problem');
    expect(await readField(page, 'phone')).toBe('0491 570 006');
    expect(await page.textContent('#resume')).toContain('ada.txt');

    await page.fill('#firstName', 'Ada');
    await page.fill('#lastName', 'Byron');
    await page.fill('#email', 'ada@example.com');
    await attach(page, 'ada.exe', 'application/octet-stream', Buffer.from('MZ'));
    expect(await sendUnchecked()).toBe(303);
    expect(await readMessage(page, 'resumeFile')).toContain('PDF, Word');
    await attach(page, 'ada.pdf', 'application/pdf', Buffer.alloc(5_000_001));
    expect(await sendUnchecked()).toBe(303);
    expect(await readMessage(page, 'resumeFile')).toContain('larger than 5 MB');
    await page.reload();
    expect(await readField(page, 'firstName')).toBe('Ada');

    await page.click('#application button');
    await page.waitForURL(`${siteUrl}/thanks`);
    await page.goBack();
    expect(page.url()).toBe(`${siteUrl}/apply`);
    expect(await readField(page, 'firstName')).toBe('');
    expect(await page.locator('#problems').count()).toBe(0);
  });

  test('sends nothing from a form of another site, and no page of theirs is cached or framed', async ({ database }) => {
    await using scene = await openScene(database);
    const { siteUrl } = scene;
    const body = new URLSearchParams({ firstName: 'a', lastName: 'b', email: 'a@example.com' });
    const post = (headers: Record<string, string>) =>
      fetch(`${siteUrl}/apply`, { method: 'POST', body, headers, redirect: 'manual' });
    expect((await post({ origin: 'https://evil.example' })).status).toBe(403);
    expect((await post({})).status).toBe(403);
    expect((await post({ origin: siteUrl })).status).toBe(303);
    for (const path of ['/', '/apply', '/apply?prefill_error=<script>']) {
      const { headers } = await fetch(`${siteUrl}${path}`);
      expect(headers.get('cache-control'), path).toBe('no-store');
      expect(headers.get('content-security-policy'), path).toContain("frame-ancestors 'none'");
      expect(headers.get('set-cookie'), path).toMatch(/HttpOnly; SameSite=Lax/);
    }
  });
});

test('every page of the way fits a phone of 390 pixels, and the question names the employer', async ({ database }) => {
  await using scene = await openScene(database);
  const { page, siteUrl, stage } = scene;
  await page.setViewportSize({ width: 390, height: 844 });
  const expectFitting = async (what: string) =>
    expect([what, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([what, 390]);
  await page.goto(siteUrl);
  await expectFitting('job');
  await page.click('#prefill');
  await page.waitForSelector('button[value=allow]');
  await expectFitting('consent');
  const question = await page.textContent('main');
  expect(question).toContain(`${stage.sandbox.employer} would like to see your profile`);
  expect(question).not.toContain(stage.sandbox.client.clientId);
  await allow(page, siteUrl);
  await expectFitting('form');
  await page.fill('#email', 'no address');
  await page.evaluate(unchecked);
  await page.click('#application button');
  await page.waitForSelector('#problems');
  await expectFitting('form with a problem');
});

/** Expects no code or state in any Referer, and no data of the candidate in any address. */
function expectNothingLeaked({ stage, asked }: Scene): void {
  const [grant] = stage.sandbox.grants();
  const { person, resume } = grant?.candidate ?? {};
  const addresses = asked.map(({ url }) => decodeURIComponent(url)).join('\n');
  const referers = asked.map(({ referer }) => decodeURIComponent(referer)).join('\n');
  const personal = [person?.lastName, person?.email, person?.phone, resume?.fileName];
  for (const text of [...personal, grant?.token]) expect(addresses).not.toContain(text);
  expect(addresses).toContain(grant?.code);
  for (const text of [grant?.code, 'state=', 'prefill=']) expect(referers).not.toContain(text);
}
