// Loads the configuration of a command and opens what it works with: the store and its accounts, and the files where it needs them. Passes in
// the embedded server: of the production code, only the CLI knows src/dev.
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import type { BlobsUse } from '../app/storage.ts';
import type { Environment } from '../config/local.ts';
import type { Config, Need } from '../config.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import type { AuditEntry } from '../store/privacy/decisions.ts';
import type { Context } from './command.ts';
import { Misuse } from './failure.ts';

const root = join(import.meta.dirname, '../..');

/** Reads the parts that a command needs. With `advertiser`, its `--advertiser`, the configuration holds only that account. */
export async function loadCommandConfig<const N extends Need>(
  env: Environment,
  needs: readonly N[],
  advertiser?: string,
  demo = false,
): Promise<Config<N>> {
  const { loadConfig } = await import('../config.ts');
  const config = loadConfig(env, { needs, demo, openEmbedded });
  if (advertiser === undefined) return config;
  const { accounts, source } = config as Partial<Config<'accounts' | 'source'>>;
  return {
    ...config,
    ...(accounts && { accounts: [requireNamed('advertiser', accounts, advertiser)] }),
    ...(source && { source: { ...source, advertisers: [requireNamed('advertiser', source.advertisers, advertiser)] } }),
  };
}

/** The configured thing that the user has named. */
export function requireNamed<T extends { readonly name: string }>(what: string, all: readonly T[], name: string): T {
  const found = all.find((one) => one.name === name);
  if (found) return found;
  const known = all.map((one) => one.name).join(', ');
  // Only of webhooks there may be none.
  const none = 'Set WEBHOOK_URL and WEBHOOK_SECRET, or name webhooks in ADVERTISERS_FILE.';
  const advice = known === '' ? none : `Use a name that is configured: ${known}.`;
  throw new Misuse(`There is no ${what} "${name.slice(0, 100)}" in the configuration.`, advice);
}

async function openEmbedded(demo: boolean) {
  const embedded = await import('../dev/embedded/embedded.ts');
  return await embedded.openEmbedded({ root, demo });
}

/** An open store, the accounts whose ids are known, and the audit log. Throws if the configuration contradicts the database. */
export async function openKnown<N extends Need = never>(
  { env }: Context,
  role: string,
  advertiser: string | undefined,
  ...more: N[]
) {
  const needs = ['database', 'accounts', 'privacy', ...more] as const;
  const config: Config<'database' | 'accounts' | 'privacy' | N> = await loadCommandConfig(env, needs, advertiser);
  const { openStoreOf } = await import('../app/database.ts');
  const crashPoint = createCrashPoint(env.INTAKE_CRASH_AT);
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openStoreOf(config, role, { crashPoint }));
  const accounts = [];
  for (const { name, advertiserId: configuredId } of config.accounts) {
    const { advertiserId } = await store.advertisers.lookUp(name, configuredId);
    if (advertiserId !== null) accounts.push({ name, advertiserId });
  }
  const advertisers = accounts.map(({ advertiserId }) => advertiserId);
  const owned = stack.move();
  const by = toActor();
  const audit = (entry: Omit<AuditEntry, 'by'>) => store.privacy.recordAudit({ ...entry, by });
  const known = { config, store, accounts, advertisers, crashPoint, by, audit };
  return { ...known, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** For the audit log, the user of the operating system: no setting that anyone could change. In a container it may have no name. */
function toActor(): string {
  try {
    return `${userInfo().username} on ${hostname()}`;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'} on ${hostname()}`;
  }
}

/** The same with the blob store. */
export async function openFiles(context: Context, role: string, advertiser: string | undefined, use: BlobsUse) {
  await using stack = new AsyncDisposableStack();
  const known = stack.use(await openKnown(context, role, advertiser, 'blobs'));
  const { openBlobsOf } = await import('../app/storage.ts');
  const blobs = stack.use(await openBlobsOf(known.config, known.store, context.signal, use));
  const owned = stack.move();
  return { ...known, blobs, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * For crash tests: kills the process at a named point, as a power cut would, or suspends it there, or keeps its event loop busy for ever.
 * Parses `name`, `name:count`, `name:count:stop` or `name:count:hang`: acts when the point is reached for the count-th time.
 */
export function createCrashPoint(spec: string | undefined): PassCrashPoint | undefined {
  if (!spec) return undefined;
  const [wanted, count = '1', manner] = spec.split(':');
  let left = Number(count);
  return (name) => {
    if (name !== wanted || --left !== 0) return;
    while (manner === 'hang');
    process.kill(process.pid, manner === 'stop' ? 'SIGSTOP' : 'SIGKILL');
  };
}
