// Runs the example on Node 24: npx node examples/careers-site/main.ts, with INTAKE_URL, PREFILL_KEY and ADVERTISER_ID set.

import { serve } from '@hono/node-server';
import { createCareersSite } from './site.ts';

const { PREFILL_KEY: prefillKey, ADVERTISER_ID: advertiserId } = process.env;
if (!prefillKey || !advertiserId) {
  console.error('Set PREFILL_KEY (the same as at Intake) and ADVERTISER_ID (a configured account).');
  process.exit(2);
}
const port = Number(process.env.PORT ?? 8090);
const siteUrl = process.env.SITE_URL ?? `http://127.0.0.1:${port}`;
const app = createCareersSite({
  siteUrl,
  intakeUrl: process.env.INTAKE_URL ?? 'http://127.0.0.1:8080',
  prefillKey,
  advertiserId,
  employer: process.env.EMPLOYER ?? 'Example Employer',
});
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, () => console.log(`The careers site is at ${siteUrl}/`));
// A demo starts this process with an IPC channel, which closes when the demo ends.
process.once('disconnect', () => process.exit());
