// A candidate in a real Chromium: the example careers site, the sandbox's consent page, and back.
import { createAdaptorServer } from '@hono/node-server';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { createCareersSite } from '../../examples/careers-site/site.ts';
import {
  findFreePort,
  openPrefillStage,
  type PrefillStage,
  prefillKey,
  sessionSecret,
} from '../support/prefill-stage.ts';
import { type TestDatabase, test } from '../support/test-database.ts';

let browser: Browser;
beforeAll(async () => {
  // A browser in a container has no user namespaces to build its sandbox from.
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
});
afterAll(() => browser.close());

interface Scene extends AsyncDisposable {
  readonly stage: PrefillStage;
  readonly siteUrl: string;
  readonly context: BrowserContext;
  readonly page: Page;
  /** Every address that any tab asked for, and the Referer it was asked with. */
  readonly asked: { readonly url: string; readonly referer: string }[];
}

async function openScene(database: TestDatabase): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  const port = await findFreePort();
  // Another host name than the routes': a cookie of one must not serve the other.
  const siteUrl = `http://localhost:${port}`;
  const stage = stack.use(
    await openPrefillStage(database, { choices: { consent: 'ask' }, env: { PREFILL_RETURN_URLS: `${siteUrl}/apply` } }),
  );
  const site = createCareersSite({
    siteUrl,
    intakeUrl: stage.urls[0] ?? '',
    prefillKey,
    advertiserId: String(stage.sandbox.advertiserId),
  });
  const server = createAdaptorServer({ fetch: site.fetch });
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  stack.defer(async () => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
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

const readField = (page: Page, name: string) => page.inputValue(`input[name=${name}]`);

/** From the job ad to the source's question. */
async function begin(page: Page, siteUrl: string): Promise<void> {
  await page.goto(siteUrl);
  await page.click('#prefill');
  await page.waitForSelector('button[value=allow]');
}

describe('a candidate who applies with a profile', () => {
  test('allows, and sees the form filled in and the resume attached', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl, stage } = scene;
    await begin(page, siteUrl);
    await page.click('button[value=allow]');
    await page.waitForURL(`${siteUrl}/apply`);
    const { person, resume } = stage.sandbox.grants()[0]?.candidate ?? {};
    expect(await readField(page, 'firstName')).toBe(person?.firstName);
    expect(await readField(page, 'lastName')).toBe(person?.lastName);
    expect(await readField(page, 'email')).toBe(person?.email);
    expect(await readField(page, 'phone')).toBe(person?.phone);
    expect(await page.textContent('#resume')).toContain(resume?.fileName);
    await page.reload();
    expect(await readField(page, 'firstName')).toBe(person?.firstName);
    await page.click('form button');
    expect(await page.textContent('#thanks')).toContain(`with a resume of ${resume?.sizeBytes} bytes`);
    expectNothingLeaked(scene);
  });

  test('denies, and is told that this is fine', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl } = scene;
    await begin(page, siteUrl);
    await page.click('button[value=deny]');
    await page.waitForURL(`${siteUrl}/apply?prefill_error=denied`);
    expect(await page.textContent('#notice')).toContain('That is fine');
    expect(await readField(page, 'firstName')).toBe('');
  });

  test('goes back and allows again: led to the form, and nothing is used twice', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl, stage } = scene;
    await begin(page, siteUrl);
    await page.click('button[value=allow]');
    await page.waitForURL(`${siteUrl}/apply`);
    const { person } = stage.sandbox.grants()[0]?.candidate ?? {};
    await page.goBack();
    await page.waitForSelector('button[value=allow]');
    await page.click('button[value=allow]');
    await page.waitForURL(`${siteUrl}/apply?prefill_error=expired`);
    expect(await page.textContent('#notice')).toContain('start again');
    expect(await readField(page, 'firstName')).toBe(person?.firstName);
    expect(stage.sandbox.requests().filter(({ path }) => path.endsWith('/token'))).toHaveLength(1);
  });

  test('reloads the callback: led to the form, and nothing is used twice', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl, stage, asked } = scene;
    await begin(page, siteUrl);
    await page.click('button[value=allow]');
    await page.waitForURL(`${siteUrl}/apply`);
    const callback = asked.find(({ url }) => url.includes('/prefill/callback'))?.url ?? '';
    await page.goto(callback);
    expect(page.url()).toBe(`${siteUrl}/apply?prefill_error=expired`);
    expect(stage.sandbox.requests().filter(({ path }) => path.endsWith('/token'))).toHaveLength(1);
  });

  test('opens the captured callback in another browser: a calm page at a clean address', async ({ database }) => {
    await using scene = await openScene(database);
    const { page, siteUrl, asked } = scene;
    await begin(page, siteUrl);
    await page.click('button[value=allow]');
    await page.waitForURL(`${siteUrl}/apply`);
    const callback = asked.find(({ url }) => url.includes('/prefill/callback'))?.url ?? '';
    const other = await browser.newContext();
    const stranger = await other.newPage();
    await stranger.goto(callback);
    expect(new URL(stranger.url()).pathname + new URL(stranger.url()).search).toBe('/prefill/stopped');
    expect(await stranger.textContent('h1')).toBe('This step is already over');
    await other.close();
  });

  test('has two tabs open, and both lead to a filled form', async ({ database }) => {
    await using scene = await openScene(database);
    const { context, page, siteUrl } = scene;
    const second = await context.newPage();
    await begin(page, siteUrl);
    await begin(second, siteUrl);
    for (const tab of [second, page]) {
      await tab.click('button[value=allow]');
      await tab.waitForURL(`${siteUrl}/apply`);
      expect(await readField(tab, 'firstName')).not.toBe('');
    }
  });
});

/** No secret in any address or log; no code or state in any Referer; nothing of the candidate in addresses or logs. */
function expectNothingLeaked({ stage, asked }: Scene): void {
  const [grant] = stage.sandbox.grants();
  const { person, resume } = grant?.candidate ?? {};
  const secrets = [stage.sandbox.client.clientSecret, prefillKey, sessionSecret, grant?.token];
  const personal = [person?.lastName, person?.email, person?.phone, resume?.fileName];
  const addresses = asked.map(({ url }) => decodeURIComponent(url)).join('\n');
  const referers = asked.map(({ referer }) => decodeURIComponent(referer)).join('\n');
  for (const text of [...secrets, ...personal]) {
    expect(addresses).not.toContain(text);
    expect(stage.logged()).not.toContain(text);
  }
  expect(addresses).toContain(grant?.code);
  for (const text of [grant?.code, 'state=', 'prefill=']) expect(referers).not.toContain(text);
  expect(stage.logged()).not.toContain(grant?.code);
}
