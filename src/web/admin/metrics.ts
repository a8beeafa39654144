// Exposes the status as Prometheus metrics; the only user of prom-client. Label values are configured names and closed sets of words, so
// their number is bounded whatever the source sends. docs/metrics.md lists every name; a test compares the two, and deploy/ with both.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AdvertiserStatus } from '../../domain/status/advertiser-status.ts';
import { toUnusualSilence } from '../../domain/status/silence.ts';
import { isHealthy, type Status } from '../../domain/status/status.ts';
import { version } from '../../domain/version.ts';
import { toWebhookLagMs, toWebhookState, type WebhookStatus } from '../../domain/webhook.ts';
import { fileOutcomes, type Pass } from '../../sync/worker/pass.ts';

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
  const requests = counter(
    'intake_list_requests_total',
    'List requests whose answers were stored, by kind of pass.',
    'pass',
  );
  const taken = counter('intake_applications_taken_total', 'Applications that passes stored, new or changed.', 'how');
  const files = counter('intake_files_total', 'Files by outcome; failed ones are tried again.', 'outcome');
  const fileBytes = counter('intake_file_bytes_total', 'Bytes of files that were stored.');
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
    observePass(ended: Pass): void {
      const { pass, outcome, durationMs, kind } = ended;
      passes.inc({ pass, outcome });
      durations.observe({ pass }, durationMs / 1_000);
      if (kind !== undefined) troubles.inc({ kind });
      if (ended.requests) requests.inc({ pass }, ended.requests);
      for (const how of ['added', 'changed'] as const) if (ended[how]) taken.inc({ how }, ended[how]);
      for (const name of fileOutcomes) if (ended.files?.[name]) files.inc({ outcome: name }, ended.files[name]);
      if (ended.fileBytes) fileBytes.inc(ended.fileBytes);
      if (ended.delivered) delivered.inc(ended.delivered);
    },
  };
}

/** Gauges that prom-client names like counters. promtool rejects the names, and no alert rule needs them. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** The status as gauges. They are made anew for every scrape, so that none keeps a value of an earlier status. */
async function renderGauges(status: Status): Promise<string> {
  const register = new Registry();
  const set = (name: string, help: string, labels: Record<string, string>, value: number | null) => {
    if (value === null) return;
    const known = register.getSingleMetric(name) as Gauge | undefined;
    const gauge = known ?? new Gauge({ name, help, labelNames: Object.keys(labels), registers: [register] });
    gauge.set(labels, value);
  };
  set('intake_build_info', 'Always 1; the version is a label.', { version }, 1);
  for (const [name, { help, value }] of Object.entries(wholeGauges)) set(name, help, {}, value(status));
  for (const urgent of [true, false]) {
    const count = status.problems.filter((one) => one.urgent === urgent).length;
    set('intake_problems', 'Problems that intake status lists, by urgency.', { urgent: String(urgent) }, count);
  }
  for (const dependency of ['source', 'database', 'storage']) {
    const help = '1 while a worker waits because this dependency is unavailable.';
    const isAway = status.waits.some((wait) => wait.dependency === dependency);
    set('intake_waiting', help, { dependency }, Number(isAway));
  }
  for (const one of status.advertisers) {
    const advertiser = one.name;
    for (const [name, { help, value }] of Object.entries(advertiserGauges))
      set(name, help, { advertiser }, value(one, status.at));
    const held = one.coverage?.certificate ?? 'unproven';
    for (const certificate of ['proven', 'assumed', 'unproven']) {
      const help = '1 for the certificate that holds over all ids of the advertiser, 0 for the others.';
      set('intake_coverage', help, { advertiser, certificate }, Number(certificate === held));
    }
    for (const [state, count] of Object.entries(one.attachments))
      set('intake_attachments', 'Attachments by state.', { advertiser, state }, count);
  }
  for (const one of status.webhooks) {
    for (const [name, { help, value }] of Object.entries(webhookGauges))
      set(name, help, { advertiser: one.advertiser, webhook: one.name }, value(one, status.at));
  }
  return await register.metrics();
}

const webhookGauges: Record<string, { help: string; value: (one: WebhookStatus, at: Date) => number }> = {
  intake_webhook_halted: {
    help: '1 while the endpoint takes no events: halted after 75 hours of failures, or disabled.',
    value: (one, at) => Number(['halted', 'disabled'].includes(toWebhookState(one, at))),
  },
  intake_webhook_events_waiting: {
    help: 'Events that the endpoint has not taken yet, counted up to 10,000.',
    value: ({ behind }) => behind,
  },
  intake_webhook_lag_seconds: {
    help: 'How long the first of them has waited; 0 when there is none.',
    value: (one, at) => toWebhookLagMs(one, at) / 1_000,
  },
};

const wholeGauges: Record<string, { help: string; value: (status: Status) => number | null }> = {
  intake_healthy: {
    help: '1 while at least one advertiser exists and no problem is urgent.',
    value: (status) => (isHealthy(status) ? 1 : 0),
  },
  intake_stale_after_seconds: {
    help: 'The longest time between polls that counts as up to date: SYNC_WITHIN; absent where SYNC_SCHEDULE is off.',
    value: ({ staleAfterMs }) => staleAfterMs && staleAfterMs / 1_000,
  },
  intake_proof_limit_seconds: {
    help: 'How old a proof may be: RECHECK_WITHIN.',
    value: ({ proofLimitMs }) => proofLimitMs && proofLimitMs / 1_000,
  },
  intake_verify_limit_seconds: {
    help: 'Every stored byte must have been read again within this time: VERIFY_WITHIN.',
    value: ({ verifyWithinMs }) => verifyWithinMs && verifyWithinMs / 1_000,
  },
  intake_extract_limit_seconds: {
    help: 'How old an extract may be: EXTRACT_WITHIN; absent where EXTRACT_SCHEDULE is off.',
    value: ({ extract }) => extract && extract.withinMs / 1_000,
  },
  intake_extract_timestamp_seconds: {
    help: 'When the last extract was published; 0 before the first one, absent where EXTRACT_SCHEDULE is off.',
    value: ({ extract }) => extract && (toSeconds(extract.publishedAt) ?? 0),
  },
};

const advertiserGauges: Record<string, { help: string; value: (one: AdvertiserStatus, at: Date) => number | null }> = {
  intake_advertiser_halted: {
    help: '1 while the advertiser is halted: its credential is refused, or answers belonged to another account.',
    value: ({ halt }) => (halt === null ? 0 : 1),
  },
  intake_applications: { help: 'Applications stored.', value: ({ applications }) => applications },
  intake_newest_application_timestamp_seconds: {
    help: 'When the newest stored application was submitted.',
    value: ({ newestSubmittedAt }) => toSeconds(newestSubmittedAt),
  },
  intake_read_timestamp_seconds: {
    help: 'When a poll last read everything new.',
    value: ({ readAt }) => toSeconds(readAt),
  },
  intake_complete_through_timestamp_seconds: {
    help: 'Applications submitted up to here are all stored, under the certificate; absent while nothing is complete.',
    value: ({ coverage }) => toSeconds(coverage?.completeThrough ?? null),
  },
  intake_coverage_doubt: {
    help: '1 while there is evidence against completeness, or nothing is proven.',
    value: ({ coverage }) => (coverage === null || coverage.risk === 'doubt' ? 1 : 0),
  },
  intake_proof_age_seconds: {
    help: 'Age of the proof over all ids, counted from its oldest part; absent while nothing is proven.',
    value: ({ coverage }, at) =>
      coverage === null || coverage.certificate === 'unproven'
        ? null
        : Math.max(0, at.getTime() - coverage.asOf.getTime()) / 1_000,
  },
  intake_open_ranges: { help: 'Ranges of ids without a certificate.', value: ({ openRanges }) => openRanges },
  intake_lateness_seconds: {
    help: 'The longest time that an application appeared at the source after a higher id; absent when none came late.',
    value: ({ latenessMs }) => latenessMs && latenessMs / 1_000,
  },
  intake_unusual_silence_seconds: {
    help: 'Time since the last application where that is unusually long for the account; 0 otherwise.',
    value: ({ submittedAt }, at) => (toUnusualSilence(submittedAt, at.getTime())?.silentForMs ?? 0) / 1_000,
  },
  intake_quarantined: {
    help: 'List elements in quarantine, stored without a usable id.',
    value: ({ quarantined }) => quarantined,
  },
  intake_kept_out: {
    help: 'How often an application, a list element or a prefill of an erased person was kept out.',
    value: ({ keptOut }) => keptOut,
  },
  intake_unread_bytes_age_seconds: {
    help: 'Time since the stored bytes that were verified longest ago were last read, or stored; absent while nothing is stored.',
    value: ({ verifiedSince }, at) => verifiedSince && Math.max(0, at.getTime() - verifiedSince.getTime()) / 1_000,
  },
  intake_downloads_waiting: { help: 'Downloads in the queue.', value: ({ waiting }) => waiting },
  intake_downloads_due: { help: 'Downloads that are due now.', value: ({ due }) => due },
  intake_oldest_due_download_timestamp_seconds: {
    help: 'When the oldest due download became due; absent when none is due.',
    value: ({ oldestDueAt }) => toSeconds(oldestDueAt),
  },
};

function toSeconds(at: Date | null): number | null {
  return at && at.getTime() / 1_000;
}
