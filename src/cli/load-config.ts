// Loads the configuration of a command and passes in the embedded server: of the production code, only the CLI knows src/dev.
import { join } from 'node:path';
import type { Environment } from '../config/local.ts';
import type { Config, Need } from '../config.ts';

const root = join(import.meta.dirname, '../..');

/** Reads the parts that a command needs. */
export async function loadCommandConfig<const N extends Need>(
  env: Environment,
  request: { readonly needs: readonly N[] },
): Promise<Config<N>> {
  const { loadConfig } = await import('../config.ts');
  return loadConfig(env, { ...request, openEmbedded });
}

async function openEmbedded() {
  const embedded = await import('../dev/embedded/embedded.ts');
  return await embedded.openEmbedded({ root });
}
