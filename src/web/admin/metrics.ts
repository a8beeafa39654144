// Exposes the status as Prometheus metrics; the only user of prom-client. Label values are configured names and closed sets of words, so
// their number is bounded whatever the source sends. docs/metrics.md lists every name; a test compares the two, and deploy/ with both.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { version } from '../../domain/schema.ts';
import { type AdvertiserStatus, toUnusualSilence } from '../../domain/status/advertiser-status.ts';
import { isHealthy, type Status } from '../../domain/status/status.ts';
import { toWebhookLagMs, toWebhookState, type WebhookState, type WebhookStatus } from '../../domain/webhook.ts';
import type { Pass } from '../../sync/worker/pass.ts';

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const register = new Registry();
  const registers = [register];
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  collectDefaultMetrics({ register });
  for (const name of misnamed) register.removeSingleMetric(name);
  const passes = counter('intake_passes_total', 'Passes that ended, by kind and outcome.', 'pass', 'outcome');
  const troubles = counter('intake_troubles_total', 'Passes that failed, by the kind of trouble.', 'kind');
  const files = counter('intake_files_total', 'Files by outcome; failed ones are tried again.', 'outcome');
  const delivered = counter('intake_webhook_events_total', 'Events that webhook endpoints took.');
  const durations = new Histogram({
    name: 'intake_pass_duration_seconds',
    help: 'How long passes took.',
    labelNames: ['pass'],
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 1800],
    registers,
  });
  const loop = monitorEventLoopDelay();
  loop.enable();
  new Gauge({
    name: 'intake_event_loop_block_seconds',
    help: 'The longest time that the event loop of this process has stood still.',
    registers,
    collect() {
      this.set(loop.max / 1e9);
    },
  });

  return {
    contentType: register.contentType,
    /** All metrics as text, with the status as gauges. */
    async render(status: Status): Promise<string> {
      return (await register.metrics()) + (await renderGauges(status));
    },
    observeDelivered: () => delivered.inc(),
    observePass({ pass, outcome, durationMs, kind, files: counted = {} }: Pass): void {
      passes.inc({ pass, outcome });
      durations.observe({ pass }, durationMs / 1_000);
      if (kind !== undefined) troubles.inc({ kind });
      for (const [outcome, count] of Object.entries(counted)) if (count > 0) files.inc({ outcome }, count);
    },
  };
}

/** Gauges that prom-client names like counters. promtool rejects the names, and no alert rule needs them. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

type Gauges<T> = Readonly<Record<string, readonly [help: string, value: (one: T, at: Date) => number | null]>>;

/** The status as gauges. They are made anew for every scrape, so that none keeps a value of an earlier status. */
async function renderGauges(status: Status): Promise<string> {
  const register = new Registry();
  const set = (name: string, help: string, labels: Record<string, string>, value: number | null) => {
    if (value === null) return;
    const known = register.getSingleMetric(name) as Gauge | undefined;
    const gauge = known ?? new Gauge({ name, help, labelNames: Object.keys(labels), registers: [register] });
    gauge.set(labels, value);
  };
  const setAll = <T>(gauges: Gauges<T>, labels: Record<string, string>, one: T) => {
    for (const [name, [help, value]] of Object.entries(gauges)) set(name, help, labels, value(one, status.at));
  };
  setAll(wholeGauges, {}, status);
  set('intake_build_info', 'Always 1; the version is a label.', { version }, 1);
  for (const urgent of [true, false]) {
    const count = status.problems.filter((one) => one.urgent === urgent).length;
    set('intake_problems', 'Problems that intake status lists, by urgency.', { urgent: String(urgent) }, count);
  }
  for (const one of status.advertisers) {
    const advertiser = one.name;
    setAll(advertiserGauges, { advertiser }, one);
    for (const certificate of ['proven', 'assumed', 'unproven']) {
      const help = '1 for the certificate that holds over all ids of the advertiser, 0 for the others.';
      const isHeld = certificate === (one.coverage?.certificate ?? 'unproven');
      set('intake_coverage', help, { advertiser, certificate }, Number(isHeld));
    }
    for (const [state, count] of Object.entries(one.attachments))
      set('intake_attachments', 'Attachments by state.', { advertiser, state }, count);
  }
  for (const one of status.webhooks) setAll(webhookGauges, { advertiser: one.advertiser, webhook: one.name }, one);
  return await register.metrics();
}

const wholeGauges: Gauges<Status> = {
  intake_healthy: ['1 while an advertiser exists and no problem is urgent.', (one) => Number(isHealthy(one))],
  intake_stale_after_seconds: ['SYNC_WITHIN.', ({ staleAfterMs }) => toSeconds(staleAfterMs)],
  intake_proof_limit_seconds: ['RECHECK_WITHIN.', ({ proofLimitMs }) => toSeconds(proofLimitMs)],
  intake_verify_limit_seconds: ['VERIFY_WITHIN.', ({ verifyWithinMs }) => toSeconds(verifyWithinMs)],
  intake_extract_limit_seconds: ['EXTRACT_WITHIN.', ({ extract }) => toSeconds(extract?.withinMs)],
  intake_extract_timestamp_seconds: [
    'When the last extract was published; 0 before the first one.',
    ({ extract }) => extract && toSeconds(extract.publishedAt ?? 0),
  ],
};

const advertiserGauges: Gauges<AdvertiserStatus> = {
  intake_advertiser_halted: ['1 while the advertiser is halted.', ({ halt }) => Number(halt !== null)],
  intake_applications: ['Applications stored.', ({ applications }) => applications],
  intake_newest_application_timestamp_seconds: [
    'When the newest stored application was submitted.',
    ({ newestSubmittedAt }) => toSeconds(newestSubmittedAt),
  ],
  intake_read_timestamp_seconds: ['When a poll last read everything new.', ({ readAt }) => toSeconds(readAt)],
  intake_complete_through_timestamp_seconds: [
    'Applications submitted up to here are all stored, under the certificate.',
    ({ coverage }) => toSeconds(coverage?.completeThrough),
  ],
  intake_coverage_doubt: [
    '1 while there is evidence against completeness, or nothing is proven.',
    ({ coverage }) => Number((coverage?.risk ?? 'doubt') === 'doubt'),
  ],
  intake_proof_age_seconds: [
    'Age of the proof over all ids, counted from its oldest part.',
    ({ coverage }, at) => (coverage?.certificate === 'unproven' ? null : toAge(coverage?.asOf, at)),
  ],
  intake_open_ranges: ['Ranges of ids without a certificate.', ({ openRanges }) => openRanges],
  intake_lateness_seconds: ['How late an application came at most.', ({ latenessMs }) => toSeconds(latenessMs)],
  intake_unusual_silence_seconds: [
    'Time since the last application where that is unusually long for the account; 0 otherwise.',
    ({ submittedAt }, at) => toSeconds(toUnusualSilence(submittedAt, at.getTime())?.silentForMs ?? 0),
  ],
  intake_quarantined: ['List elements in quarantine.', ({ quarantined }) => quarantined],
  intake_unread_bytes_age_seconds: [
    'Time since the oldest stored bytes were last read.',
    ({ verifiedSince }, at) => toAge(verifiedSince, at),
  ],
  intake_downloads_waiting: ['Downloads in the queue.', ({ waiting }) => waiting],
  intake_downloads_due: ['Downloads that are due now.', ({ due }) => due],
  intake_oldest_due_download_timestamp_seconds: [
    'When the oldest due download became due.',
    ({ oldestDueAt }) => toSeconds(oldestDueAt),
  ],
};

const isHalted = (state: WebhookState) => state === 'halted' || state === 'disabled';
const webhookGauges: Gauges<WebhookStatus> = {
  intake_webhook_halted: [
    '1 while the endpoint takes no events: halted or disabled.',
    (one, at) => Number(isHalted(toWebhookState(one, at))),
  ],
  intake_webhook_events_waiting: ['Events that it has not taken yet, counted up to 10,000.', ({ behind }) => behind],
  intake_webhook_lag_seconds: ['How long the first has waited.', (one, at) => toSeconds(toWebhookLagMs(one, at))],
};

type Moment = Date | null | undefined;

function toSeconds(at: Moment | number): number | null {
  return at === null || at === undefined ? null : Number(at) / 1_000;
}

function toAge(since: Moment, now: Date): number | null {
  return since ? Math.max(0, now.getTime() - since.getTime()) / 1_000 : null;
}
