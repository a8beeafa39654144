// Loads the configuration of a command and passes in the embedded server: of the production code, only the CLI knows src/dev.
import { join } from 'node:path';
import type { Environment } from '../config/local.ts';
import type { Config, Need } from '../config.ts';
import type { Context } from './command.ts';

const root = join(import.meta.dirname, '../..');

/** Reads the parts that a command needs. */
export async function loadCommandConfig<const N extends Need>(
  env: Environment,
  request: { readonly needs: readonly N[] },
): Promise<Config<N>> {
  const { loadConfig } = await import('../config.ts');
  return loadConfig(env, { ...request, openEmbedded });
}

/** The configuration of a command that reads once, as a worker does for ever; tells its warnings, which a worker logs. */
export async function loadReadConfig({ env, terminal }: Pick<Context, 'env' | 'terminal'>) {
  const config = await loadCommandConfig(env, { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] });
  for (const warning of config.warnings) terminal.note(`Warning: ${warning}.`);
  return config;
}

async function openEmbedded() {
  const embedded = await import('../dev/embedded/embedded.ts');
  return await embedded.openEmbedded({ root });
}
