import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { version } from '../../src/domain/schema.ts';
import { toStatus } from '../../src/domain/status/status.ts';
import { createFilled } from '../support/database/filled-metrics.ts';
import { until } from '../support/suite/until.ts';

async function loadNames(): Promise<string[]> {
  const { metrics, status } = createFilled();
  return [...(await metrics.render(status)).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? '');
}

const isOurs = (name: string) => name.startsWith('intake_');

describe('a scrape', () => {
  it('tells the status in gauges', async () => {
    const { metrics, status } = createFilled();
    const text = await metrics.render(status);
    for (const line of [
      `intake_build_info{version="${version}"} 1`,
      'intake_healthy 1',
      'intake_stale_after_seconds 1200',
      'intake_problems{urgent="true"} 0',
      'intake_applications{advertiser="north"} 7',
      'intake_read_timestamp_seconds{advertiser="north"} 1794736800',
      'intake_coverage{advertiser="north",certificate="assumed"} 1',
      'intake_coverage{advertiser="north",certificate="proven"} 0',
      'intake_coverage_doubt{advertiser="north"} 0',
      'intake_proof_age_seconds{advertiser="north"} 90',
      'intake_proof_limit_seconds 173400',
      'intake_unread_bytes_age_seconds{advertiser="north"} 86400',
      'intake_verify_limit_seconds 2592000',
      'intake_extract_limit_seconds 172800',
      'intake_extract_timestamp_seconds 1794733200',
      'intake_attachments{advertiser="north",state="infected"} 1',
      'intake_lateness_seconds{advertiser="north"} 1.5',
      'intake_unusual_silence_seconds{advertiser="north"} 0',
      'intake_passes_total{pass="poll",outcome="done"} 1',
      'intake_troubles_total{kind="refused"} 1',
      'intake_files_total{outcome="stored"} 4',
      'intake_webhook_events_total 6',
      'intake_webhook_halted{advertiser="north",webhook="ats"} 0',
      'intake_webhook_events_waiting{advertiser="north",webhook="ats"} 2',
      'intake_webhook_lag_seconds{advertiser="north",webhook="ats"} 40',
    ]) {
      expect(text).toContain(`${line}\n`);
    }
  });

  it('tells how long the event loop has stood still at most', async () => {
    const { metrics, status } = createFilled();
    const loadBlock = async () => {
      const text = await metrics.render(status);
      return Number(/^intake_event_loop_block_seconds (\S+)$/m.exec(text)?.[1]);
    };
    await until(async () => (await loadBlock()) > 0);
    const before = performance.now();
    while (performance.now() - before < 500);
    await until(async () => (await loadBlock()) >= 0.49);
    // The next reader is told as well.
    expect(await loadBlock()).toBeGreaterThanOrEqual(0.49);
  });

  it('forgets an advertiser that was removed', async () => {
    const { metrics, status, advertiser, at } = createFilled();
    await metrics.render(status);
    const other = toStatus(at, [{ ...advertiser, name: 'south', latenessMs: null, verifiedSince: null }]);
    const text = await metrics.render(other);
    expect(text).not.toContain('north');
    expect(text).not.toMatch(
      /^intake_(?:stale_after|proof_limit|verify_limit|unread_bytes_age|lateness|extract_\w+)_seconds[ {]/m,
    );
  });
});

describe('every metric', () => {
  it('stands in docs/metrics.md, and no other does', async () => {
    const documented = [...readFileSync('docs/metrics.md', 'utf8').matchAll(/^\| `(\w+)` \|/gm)].map(
      ([, name]) => name,
    );
    expect(documented).toHaveLength(new Set(documented).size);
    expect(new Set(documented)).toEqual(new Set((await loadNames()).filter(isOurs)));
  });

  it.each(['deploy/prometheus-rules.yaml', 'deploy/grafana-dashboard.json'])(
    'that %s asks for exists',
    async (file) => {
      const names = await loadNames();
      const asked = toExpressions(file).flatMap((expression) =>
        (expression.match(/\b(?:intake|process|nodejs)_\w+/g) ?? []).map((name) =>
          name.replace(/_(?:bucket|sum|count)$/, ''),
        ),
      );
      expect(asked.length).toBeGreaterThan(5);
      expect(asked.filter((name) => !names.includes(name))).toEqual([]);
    },
  );
});

it('the dashboard shows every metric of webhooks, of the chosen advertisers', async () => {
  const expressions = toExpressions('deploy/grafana-dashboard.json');
  const names = (await loadNames()).filter((name) => name.startsWith('intake_webhook_'));
  expect(names).toHaveLength(4);
  for (const name of names) expect(expressions.join('\n'), name).toContain(name);
  const gauges = expressions.filter((expression) => /webhook_(?!events_total)/.test(expression));
  for (const expression of gauges) expect(expression).toContain('{advertiser=~"$advertiser"}');
});

it('the alert rules each say what is wrong and what to run, and how urgent it is', () => {
  for (const rule of loadRules()) {
    expect(rule, rule.alert).toMatchObject({
      labels: { severity: expect.stringMatching(/^(?:page|ticket)$/) },
      annotations: { summary: expect.any(String), description: expect.any(String) },
    });
  }
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Record<string, string>;
  readonly annotations: { readonly summary: string; readonly description: string };
}

function loadRules(): Rule[] {
  const { groups } = parse(readFileSync('deploy/prometheus-rules.yaml', 'utf8')) as { groups: { rules: Rule[] }[] };
  return groups.flatMap((group) => group.rules);
}

function toExpressions(file: string): string[] {
  if (file.endsWith('.yaml')) return loadRules().map((rule) => rule.expr);
  const dashboard = JSON.parse(readFileSync(file, 'utf8')) as { panels: { targets: { expr: string }[] }[] };
  return [
    ...dashboard.panels.flatMap((panel) => panel.targets.map((target) => target.expr)),
    ...JSON.stringify(dashboard)
      .matchAll(/label_values\((\w+)/g)
      .map(([, name]) => name ?? ''),
  ];
}
