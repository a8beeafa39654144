// The page that explains a proof, in a real Chromium: its evidence is visible and linked, without scripts, in light and dark mode and on a
// phone.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTestAdmin } from '../support/admin.ts';
import { openTestDatabase } from '../support/database/test-database.ts';
import { findClipped, openBrowser, openPage } from '../support/prefill/browser.ts';
import { openSmallIntake } from '../support/small-intake.ts';

let browser: Browser & AsyncDisposable;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser[Symbol.asyncDispose]());

const looks = [
  { name: 'light', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'dark', viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  { name: 'on a phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
] as const;

describe('the page of a proof', () => {
  test.each(looks)('says what it rests on: $name', async ({ name, ...look }) => {
    await using database = await openTestDatabase();
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120 });
    await intake.sweep();
    await using admin = await openTestAdmin(database);
    const { page, requests, complaints } = await openPage(browser, { ...look, javaScriptEnabled: false });
    await page.goto(admin.url);
    await page.getByRole('link', { name: /^why / }).click();

    expect(await page.getByRole('heading', { level: 1 }).innerText()).toMatch(
      /^Every application of .+ submitted before .+ is stored\./,
    );
    // A phone shows no row of headings.
    expect(await page.getByRole('region', { name: 'Certificates' }).getByRole('row').last().innerText()).toMatch(
      /proven/,
    );
    expect(await page.locator('#assumptions ~ ol li').count()).toBe(3);

    expect(await page.evaluate(findClipped)).toEqual([]);
    const scroll = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(scroll).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
    expect(requests.every((url) => url.startsWith(admin.url))).toBe(true);
    if (process.env.SCREENSHOTS === '1' && name === 'light') {
      await page.goto(`${admin.url}/proof`);
      await page.screenshot({ path: 'docs/images/proof-page.png', fullPage: true });
    }
  });

  test('holds nothing of a person', async () => {
    await using database = await openTestDatabase();
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 40 });
    await intake.sweep();
    await using admin = await openTestAdmin(database);
    const text = await (await fetch(`${admin.url}/proof`)).text();
    const people = await database.query<{ email: string; last_name: string }>(
      `SELECT email, last_name FROM intake.applications WHERE email IS NOT NULL AND length(last_name) > 4`,
    );
    expect(people.length).toBeGreaterThan(10);
    expect(people.filter(({ email, last_name }) => text.includes(email) || text.includes(last_name))).toEqual([]);
  });
});
