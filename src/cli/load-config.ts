// Loads the configuration of a command and passes in the embedded server: of the production code, only the CLI knows src/dev.
import { join } from 'node:path';
import type { Environment } from '../config/local.ts';
import type { Config, Need } from '../config.ts';
import type { Context } from './command.ts';
import { Misuse } from './failure.ts';

const root = join(import.meta.dirname, '../..');

/** Reads the parts that a command needs. With `advertiser`, its `--advertiser`, the configuration holds only that account. */
export async function loadCommandConfig<const N extends Need>(
  env: Environment,
  {
    advertiser,
    ...request
  }: { readonly needs: readonly N[]; readonly demo?: boolean; readonly advertiser?: string | undefined },
): Promise<Config<N>> {
  const { loadConfig } = await import('../config.ts');
  const config = loadConfig(env, { ...request, openEmbedded });
  if (advertiser === undefined) return config;
  const { accounts, source } = config as Partial<Config<'accounts' | 'source'>>;
  return {
    ...config,
    ...(accounts && { accounts: [requireNamed('advertiser', accounts, advertiser)] }),
    ...(source && { source: { ...source, advertisers: [requireNamed('advertiser', source.advertisers, advertiser)] } }),
  };
}

/** The endpoint of this name. Throws for one that is not configured. */
export function requireWebhook({ webhooks: { endpoints } }: Config<'webhooks'>, name: string) {
  const advice = 'Set WEBHOOK_URL and WEBHOOK_SECRET, or name webhooks in ADVERTISERS_FILE.';
  return requireNamed('webhook', endpoints, name, endpoints.length === 0 ? advice : undefined);
}

/** The one of this name. Throws for a name that is not configured, and lists the configured ones. */
function requireNamed<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  name: string,
  advice = `Use a name that is configured: ${all.map((one) => one.name).join(', ')}.`,
): T {
  const found = all.find((one) => one.name === name);
  if (found) return found;
  throw new Misuse(`There is no ${what} "${name.slice(0, 100)}" in the configuration.`, advice);
}

/** The configuration of a command that reads once, as a worker does for ever; tells its warnings, which a worker logs. */
export async function loadReadConfig({ env, terminal }: Context, advertiser: string | undefined) {
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs'] as const;
  const config = await loadCommandConfig(env, { needs, advertiser });
  for (const warning of config.warnings) terminal.note(`Warning: ${warning}.`);
  return config;
}

async function openEmbedded(demo: boolean) {
  const embedded = await import('../dev/embedded/embedded.ts');
  return await embedded.openEmbedded({ root, demo });
}
