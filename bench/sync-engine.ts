// Measures CPU per row against the most similar project: the upsert path of @supabase/stripe-sync-engine, which keeps a copy of Stripe in
// Postgres. Its rows are customers of about an application's size. Intake's rows are everything that it stores for an application (itself,
// job-seeking info, attachments, queued downloads, events). Both use the same server, and both are durable.

import { createBoard, createLocalSource } from './support/board.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './support/figure.ts';
import { loadPages } from './support/loading.ts';
import { loadPeer, notInstalled } from './support/peers.ts';
import { openPlace } from './support/place.ts';

interface SyncEngine {
  readonly runMigrations: (config: { databaseUrl: string; schema: string }) => Promise<void>;
  readonly StripeSync: new (
    config: object,
  ) => {
    readonly postgresClient: {
      readonly pool: { on(event: 'error', listener: () => void): void; end(): Promise<void> };
    };
    upsertCustomers(customers: readonly object[]): Promise<unknown>;
  };
}

const peer = '@supabase/stripe-sync-engine';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const row = {
    figure: 'CPU per row',
    anchor: `the upsert path of ${peer}`,
    goal: { atLeast: 25 },
  } as const;
  const engine = loadPeer<SyncEngine>(peer);
  if (engine === null) {
    yield { ...row, ratio: null, ours: null, theirs: null, note: notInstalled(peer) };
    return;
  }
  const applications = toCount(size, 10_000);
  const customers = toCount(size, 2_000);
  await using place = await openPlace();
  const source = createLocalSource(createBoard(applications));
  let rows = 0;
  const load = async () => {
    await using database = await place.openDatabase();
    const cost = await place.meter(() => loadPages(database.url, source, applications));
    const [count] = await database.query<{ rows: number }>(
      `SELECT ((SELECT count(*) FROM intake.applications) + (SELECT count(*) FROM intake.primary_job_seeking_info)
         + (SELECT count(*) FROM intake.attachments) + (SELECT count(*) FROM intake.downloads) + (SELECT count(*) FROM intake.events))::int AS rows`,
    );
    rows = count?.rows ?? 0;
    return cost;
  };
  await load();
  const { ours, theirs } = await interleave(size.shortRepeats, {
    ours: load,
    theirs: async () => {
      await using database = await place.openDatabase();
      // The engine's migrations grant privileges to this role, and ignore errors.
      await database.query(`DO $$ BEGIN CREATE ROLE postgres; EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
      await engine.runMigrations({ databaseUrl: database.url, schema: 'stripe' });
      const sync = new engine.StripeSync({
        poolConfig: { connectionString: database.url, max: 10 },
        schema: 'stripe',
        stripeSecretKey: 'sk_test_none',
        stripeWebhookSecret: 'none',
      });
      sync.postgresClient.pool.on('error', () => undefined);
      try {
        const objects = Array.from({ length: customers }, (_, at) => toCustomer(at));
        return await place.meter(() => sync.upsertCustomers(objects));
      } finally {
        await sync.postgresClient.pool.end();
      }
    },
  });
  const [oursUs, theirsUs] = [(toCpuMs(ours) * 1_000) / rows, (toCpuMs(theirs) * 1_000) / customers];
  const note = `${oursUs.toFixed(1)} us of CPU a row in ${rows} rows, ${theirsUs.toFixed(1)} us in ${customers}`;
  yield { ...row, ratio: theirsUs / oursUs, ours, theirs, note };
}

function toCustomer(at: number): object {
  return {
    id: `cus_${String(at).padStart(14, '0')}`,
    object: 'customer',
    address: { city: 'Melbourne', country: 'AU', line1: `${at} Collins Street`, line2: null, postal_code: '3000' },
    balance: 0,
    created: 1_762_000_000 + at,
    currency: 'aud',
    default_source: null,
    delinquent: false,
    description: 'A customer of about the size of an application',
    email: `person${at}@mail.example.com`,
    invoice_prefix: String(at).padStart(8, '0'),
    invoice_settings: { custom_fields: null, default_payment_method: null, footer: null, rendering_options: null },
    livemode: false,
    metadata: { reference: `REQ-2026-${at}`, note: 'x'.repeat(300) },
    name: `Person ${at}`,
    next_invoice_sequence: 1,
    phone: '+61 491 570 006',
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
  };
}

if (import.meta.main) await report(measure);
