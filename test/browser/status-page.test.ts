// The status page in a real Chromium, as a person sees it: no scripts, no console messages, no requests to other hosts.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { fillMonth, openTestAdmin } from '../support/admin.ts';
import { test as base, openTestDatabase } from '../support/database/test-database.ts';
import { findClipped, openBrowser, openPage } from '../support/prefill/browser.ts';

let browser: Browser & AsyncDisposable;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser[Symbol.asyncDispose]());

/** Filled once for the file; tests that change the data use a separate database. */
const test = base.extend('month', { scope: 'file' }, async ({ database }) => {
  await fillMonth(database);
  return database;
});

const wide = { width: 1280, height: 900 };

/** Saves a screenshot for the docs, only with SCREENSHOTS=1 npm run test:browser: the times in the page make every screenshot differ. */
async function keepPicture(page: Page, name: 'status-page' | 'status-page-problems'): Promise<void> {
  if (process.env.SCREENSHOTS === '1') {
    await page.screenshot({ path: `docs/images/${name}.png`, fullPage: true });
  }
}

describe('the status page', () => {
  test('says first whether all is well, then draws what happened', async ({ month }) => {
    await using admin = await openTestAdmin(month);
    const { page, requests, complaints } = await openPage(browser, { viewport: wide, javaScriptEnabled: false });
    await page.goto(admin.url);
    expect(await page.title()).toBe('Healthy · Intake');
    const headline = page.getByRole('heading', { level: 1 });
    expect(await headline.innerText()).toMatch(/^All is well: [\d,]+ applications of 3 advertisers stored\.$/);
    expect((await headline.boundingBox())?.y).toBeLessThan(200);
    const rows = page.getByRole('region', { name: 'Advertisers' }).getByRole('row');
    expect(await rows.count()).toBe(4);
    expect(await rows.nth(1).innerText()).toMatch(/fern-and-finch.*proven.*up to 1m 35s/s);
    const sweeps = page.getByRole('region', { name: 'Recent sweeps' }).getByRole('row');
    expect(await sweeps.count()).toBe(13);
    expect(await sweeps.nth(1).innerText()).toMatch(/ago\s+.+\s+recheck\s+proven every id range was read/);
    expect(await page.getByRole('region', { name: 'Recent sweeps' }).locator('.badge.fair').count()).toBe(0);
    expect(await rows.nth(1).innerText()).toMatch(/\s3\sinfected/);
    expect(await page.locator('.about').innerText()).toMatch(/reports a virus.*Ask the applicant/);

    const charts = await page.getByRole('img').all();
    expect(charts).toHaveLength(2);
    for (const chart of charts) {
      expect((await chart.boundingBox())?.width).toBeGreaterThan(300);
      const marks = chart.locator('rect');
      expect(await marks.count()).toBeGreaterThan(10);
      expect((await marks.first().boundingBox())?.height).toBeGreaterThan(0);
    }
    expect([...new Set(requests.map((url) => new URL(url).origin))]).toEqual([admin.url]);
    expect(complaints).toEqual([]);
    await keepPicture(page, 'status-page');
    await page.context().close();
  });

  test('puts problems before facts, the urgent ones first, each with its command', async () => {
    await using database = await openTestDatabase();
    await fillMonth(database);
    await database.query(
      `UPDATE intake.advertisers SET state = 'halted', halt_kind = 'refused', reason = 'The source refused the credential.', halted_at = now()
       WHERE name = 'northside-clinics'`,
    );
    await database.query(
      `UPDATE intake.attachments SET state = 'given_up', reason = 'eight tries' WHERE application_id % 400 = 7`,
    );
    await using admin = await openTestAdmin(database);
    const { page, complaints } = await openPage(browser, { viewport: wide, colorScheme: 'dark' });
    await page.goto(admin.url);
    expect(await page.title()).toBe('Needs attention · Intake');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toMatch(/^One problem needs attention now;/);
    const problems = page.getByRole('region', { name: 'What to do' }).getByRole('listitem');
    expect(await problems.first().innerText()).toMatch(/urgent\s+northside-clinics Halted: The source refused/);
    expect(await problems.first().getByText('intake doctor', { exact: true }).isVisible()).toBe(true);
    expect(await problems.nth(1).innerText()).toMatch(/look .*given up/s);
    expect((await problems.first().boundingBox())?.y).toBeLessThan(
      (await page.getByRole('heading', { name: 'Advertisers', exact: true }).boundingBox())?.y ?? 0,
    );
    expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe('rgb(20, 23, 26)');
    expect(complaints).toEqual([]);
    await keepPicture(page, 'status-page-problems');
    await page.context().close();
  });

  test('shows the endpoints of webhooks, each with its state, and clips nothing of them on a phone', async () => {
    await using database = await openTestDatabase();
    await fillMonth(database);
    await database.query(
      `INSERT INTO intake.events SELECT 20000001, n, 100000 + n, 'application.received', now() - interval '2 hours' FROM generate_series(1, 3) AS n`,
    );
    await database.query(
      `INSERT INTO intake.webhooks (advertiser_id, name, position, failures, failing_since, next_at, stop, last_answer, answered_at) VALUES
         (20000003, 'ats', 9, 0, NULL, NULL, NULL, 'it answered 204', now() - interval '5 seconds'),
         (20000001, 'warehouse-of-the-holding-company', 1, 7, now() - interval '2 hours', now() + interval '9 minutes', NULL,
          'the connection to hooks.warehouse.of-the-holding-company.example.com:8443 failed (ECONNREFUSED)', now() - interval '1 minute'),
         (20000002, 'crm', 9, 1, now(), NULL, 'gone', 'it answered 410', now() - interval '3 days'),
         (20000002, 'new', 0, 0, NULL, NULL, NULL, NULL, NULL)`,
    );
    await using admin = await openTestAdmin(database);
    const { page, complaints } = await openPage(browser, { viewport: wide, javaScriptEnabled: false });
    await page.goto(admin.url);
    const problems = page.getByRole('region', { name: 'What to do' }).getByRole('listitem');
    expect(await problems.first().innerText()).toMatch(/urgent\s+northside-clinics Webhook crm is disabled: .*410/s);
    expect(await problems.first().getByText('intake retry --webhook crm', { exact: true }).isVisible()).toBe(true);
    expect(await problems.nth(1).innerText()).toMatch(/look.*is 2h behind: the connection .* failed.*; 2 events wait/s);
    const rows = page.getByRole('region', { name: 'Webhooks' }).getByRole('row');
    expect(await rows.count()).toBe(5);
    const texts = await rows.allInnerTexts();
    expect(texts[1]).toMatch(/^ats\s+fern-and-finch\s+up to date\s+9\s+0\s+it answered 204, \S+ ago\s*$/);
    expect(texts[2]).toMatch(
      /harbour-logistics\s+failing\s+1\s+2\s+2h\s+the connection to .*1m ago\s+\d{4}-\d\d-\d\d/s,
    );
    expect(texts[3]).toMatch(/^crm\s+northside-clinics\s+disabled\s+9\s+0\s+it answered 410, 3d ago\s*$/);
    expect(texts[4]).toMatch(/^new\s+northside-clinics\s+up to date\s+0\s+0\s+none yet\s*$/);
    const moods = await rows.locator('.badge').evaluateAll((all) => all.map((one) => one.className));
    expect(moods).toEqual(['badge good', 'badge fair', 'badge bad', 'badge good']);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    expect(complaints).toEqual([]);
    await page.context().close();

    const phone = await openPage(browser, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
    await phone.page.goto(admin.url);
    expect(await phone.page.evaluate<string[]>(findClipped)).toEqual([]);
    await phone.page.context().close();
  });

  test('can be read on a phone and walked through by keyboard', async ({ month }) => {
    await using admin = await openTestAdmin(month);
    const { page, complaints } = await openPage(browser, { viewport: { width: 360, height: 740 } });
    await page.goto(admin.url);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    expect(await page.evaluate<string[]>(findClipped)).toEqual([]);
    const seen: string[] = [];
    for (let press = 0; press < 14; press++) {
      await page.keyboard.press('Tab');
      const focused = 'document.activeElement';
      seen.push(await page.evaluate<string>(`${focused}.getAttribute('aria-labelledby') ?? ${focused}.textContent`));
    }
    expect(seen).toEqual(expect.arrayContaining(['advertisers', 'auto-refresh', 'sweeps-recent', 'metrics']));
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test('asks for a login where it has one', async ({ month }) => {
    const login = { user: 'operator', password: () => 'a password' };
    await using admin = await openTestAdmin(month, { login });
    const { page } = await openPage(browser, { httpCredentials: { username: 'operator', password: 'a password' } });
    expect((await page.goto(admin.url))?.status()).toBe(200);
    expect(await page.locator('#applications svg').isVisible()).toBe(true);
    await page.context().close();
  });
});
