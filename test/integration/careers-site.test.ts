// The example careers site without a browser: whose profile fills in whose form.
import { expect } from 'vitest';
import { createCareersSite } from '../../examples/careers-site/site.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { createBrowser } from '../support/prefill/candidate-browser.ts';
import { openPrefillStage, prefillKey } from '../support/prefill/prefill-stage.ts';

const siteUrl = 'https://careers.example.com';

async function openScene(database: TestDatabase) {
  const stage = await openPrefillStage(database, { env: { PREFILL_RETURN_URLS: `${siteUrl}/apply` } });
  const advertiserId = String(stage.sandbox.advertiserId);
  const site = createCareersSite({
    siteUrl,
    intakeUrl: stage.urls[0] ?? '',
    prefillKey,
    advertiserId,
    employer: 'One',
  });
  /** A browser with the cookies of the site and those of Intake. */
  const createVisitor = () => {
    const intake = createBrowser();
    let cookie = '';
    const go = async (path: string) => {
      const answer = await site.request(path, { headers: { cookie } });
      cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? cookie;
      return { location: answer.headers.get('location') ?? '', page: await answer.text() };
    };
    return {
      go,
      /** From the button to the address with the handle, which is not followed. */
      begin: async () => (await intake.toReturn((await go('/start')).location)).href.replace(siteUrl, ''),
    };
  };
  return { stage, createVisitor, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
}

const emailOf = (page: string) => /name="email"[^>]*value="([^"]*)"/.exec(page)?.[1];

test("somebody else's handle fills in nothing, also for a visitor who has clicked the button", async ({ database }) => {
  await using scene = await openScene(database);
  const [visitor, attacker] = [scene.createVisitor(), scene.createVisitor()];
  const own = await visitor.begin();
  const foreign = await attacker.begin();
  const handle = new URL(foreign, siteUrl).searchParams.get('prefill');
  for (const path of [foreign, `/apply?prefill=${handle}`, `/apply/x?prefill=${handle}`]) {
    await visitor.go(path);
    const { page } = await visitor.go('/apply');
    expect(emailOf(page) ?? '', path).toBe('');
  }
  // Nothing of it was used: each still gets what is theirs.
  expect((await visitor.go(own)).location).toBe('/apply');
  expect((await attacker.go(foreign)).location).toBe('/apply');
});
