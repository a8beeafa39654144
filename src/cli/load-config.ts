// Loads the configuration of a command and passes in the embedded server: of the production code, only the CLI knows src/dev.
import { join } from 'node:path';
import type { Environment } from '../config/local.ts';
import type { Config, Need } from '../config.ts';
import type { Context } from './command.ts';
import { Misuse } from './failure.ts';

const root = join(import.meta.dirname, '../..');

/** Reads the parts that a command needs. `advertiser` is its `--advertiser`, if it was given one. */
export async function loadCommandConfig<const N extends Need>(
  env: Environment,
  {
    advertiser,
    ...request
  }: { readonly needs: readonly N[]; readonly demo?: boolean; readonly advertiser?: string | undefined },
): Promise<Config<N>> {
  const { loadConfig } = await import('../config.ts');
  const config = loadConfig(env, { ...request, openEmbedded });
  if (advertiser !== undefined && 'source' in config) requireAdvertiser(config.source as Config['source'], advertiser);
  return config;
}

/** Throws for an `--advertiser` that is not configured, and lists the configured names. */
function requireAdvertiser({ advertisers }: Config['source'], name: string): void {
  const names = advertisers.map((advertiser) => advertiser.name);
  if (names.includes(name)) return;
  throw new Misuse(
    `There is no advertiser "${name.slice(0, 100)}" in the configuration.`,
    `Use a name that is configured: ${names.join(', ')}.`,
  );
}

/** The endpoint of this name; throws for one that is not configured, and lists the configured names. */
export function requireWebhook({ webhooks }: Config<'webhooks'>, name: string) {
  const found = webhooks.endpoints.find((one) => one.name === name);
  if (found) return found;
  const names = webhooks.endpoints.map((one) => one.name);
  throw new Misuse(
    `There is no webhook "${name.slice(0, 100)}" in the configuration.`,
    names.length === 0
      ? 'Set WEBHOOK_URL and WEBHOOK_SECRET, or name webhooks in ADVERTISERS_FILE.'
      : `Use a name that is configured: ${names.join(', ')}.`,
  );
}

/** The configuration of a command that reads once, as a worker does for ever; tells its warnings, which a worker logs. */
export async function loadReadConfig({ env, terminal }: Context, advertiser: string | undefined) {
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs'] as const;
  const config = await loadCommandConfig(env, { needs });
  for (const warning of config.warnings) terminal.note(`Warning: ${warning}.`);
  if (advertiser !== undefined) requireAdvertiser(config.source, advertiser);
  return config;
}

async function openEmbedded(demo: boolean) {
  const embedded = await import('../dev/embedded/embedded.ts');
  return await embedded.openEmbedded({ root, demo });
}
