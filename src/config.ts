// Reads every setting once at start: returns a typed Config, or throws all problems at once, each with its variable and an example.
// The environment is an argument. No problem, warning or inspection shows a secret or any other rejected text.

import { BlockList } from 'node:net';
import { join, resolve } from 'node:path';
import { loadAccounts, loadAdvertisers, loadSites, loadWebhooks } from './config/advertisers.ts';
import { type Environment, findDemoSettings, loadLocalPrivacyKey, toStateDir } from './config/local.ts';
import { type BlobsPlace, blobsPlace, directUrl, webhookSecrets } from './config/parsers.ts';
import { type ConfigDraft, findShortness, isPlain, ofOneAccount, rules } from './config/rules.ts';
import { explainUnreadable, loadSecret, Secret } from './config/secret.ts';
import { type Section, type Setting, sections, settings, toExample, type Values } from './config/settings.ts';

/** A part of the configuration that a command can request. Parts that it does not request are neither required nor read. */
export type Need = keyof typeof load;

/** The requested parts, whose values have the names of their variables, and the values that every command has. */
export type Config<N extends Need = Need> = ReturnType<typeof toBase> & {
  readonly openEmbedded?: (() => ReturnType<OpenEmbedded>) | undefined;
} & { readonly [P in N]: ReturnType<(typeof load)[P]> };

/** Starts or joins the Postgres of the checkout, or of its demo. The CLI passes it in: no other code of production imports src/dev. */
export type OpenEmbedded = (demo: boolean) => Promise<{ readonly url: string } & AsyncDisposable>;

interface ConfigRequest<N extends Need> {
  readonly needs: readonly N[];
  readonly stateDir?: string;
  /** True for the demo, whose database, files and key are its own. */
  readonly demo?: boolean;
  readonly openEmbedded?: OpenEmbedded;
}

/** Reads the parts that a command needs. Throws ConfigProblems with everything that is wrong with them. */
export function loadConfig<const N extends Need>(
  env: Environment,
  { needs, stateDir = toStateDir(env), demo = false, openEmbedded }: ConfigRequest<N>,
): Config<N> {
  const problems: ConfigProblem[] = [];
  const warnings = new Set<string>();
  const report = (name: string, text: string) => {
    // Two parts may read the same file.
    if (problems.some((known) => known.name === name && known.text === text)) return;
    problems.push({ name, text, example: toLine(name) });
  };
  const production = env.NODE_ENV?.trim() === 'production';
  const demoEnv = production || demo ? null : findDemoSettings(env, stateDir, needs.includes('source' as N));
  const isDemo = demo || demoEnv !== null;
  const home = isDemo ? join(stateDir, 'demo') : stateDir;
  const chosen = demoEnv ?? env;
  const layered = production || chosen.BLOBS_URL ? chosen : { ...chosen, BLOBS_URL: `file:${join(home, 'blobs')}` };
  const accountsFile = env.ADVERTISERS_FILE?.trim() ?? '';
  const warn = (name: string, text: string) => void warnings.add(`${name} ${text}`);
  const draft: ConfigDraft = { env, accountsFile, production, home, report, warn };

  const read = <S extends Section>(section: S, unused?: string): Values<S> => {
    const used = Object.entries<Setting>(sections[section]).filter(([name]) => name !== unused);
    const values = Object.fromEntries(
      used.map(([name, setting]) => [name, readSetting(name, setting, layered, draft)]),
    ) as Values<S>;
    rules[section]?.(values, draft);
    return values;
  };
  const process = read('process');
  const parts = Object.fromEntries(needs.map((need) => [need, load[need](read, draft)]));
  if (problems.length > 0) throw new ConfigProblems(problems);
  const base = toBase(process, [...warnings]);
  return { ...base, openEmbedded: openEmbedded && (() => openEmbedded(isDemo)), ...parts } as Config<N>;
}

/** What is wrong with the address of a database, as a sentence without its subject, the variable; null where nothing is. */
export function findAddressProblem(text: string): string | null {
  return directUrl.safeParse(text).error?.issues[0]?.message ?? null;
}

/** The secrets of a webhook now. While its file holds something else, those used last. */
export function toWebhookSecrets(secret: Secret): readonly string[] {
  return webhookSecrets.parse(secret.current((text) => webhookSecrets.safeParse(text).success));
}

/** The place of a store as a setting names it; null if the text names none. */
export function parsePlace(text: string): BlobsPlace | null {
  return blobsPlace.safeParse(text).data ?? null;
}

/** The text that names a place, whatever the working directory: `parsePlace` takes it. */
export function toLocation(place: BlobsPlace): string {
  return place.kind === 'disk' ? `file:${resolve(place.path)}` : `s3://${place.bucket}/${place.prefix}`;
}

/** One problem: `name` is the variable, `text` the rest of the sentence that begins with it, `example` a valid line. */
export interface ConfigProblem {
  readonly name: string;
  readonly text: string;
  readonly example: string;
}

export class ConfigProblems extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ name, text, example }) => `  ${name} ${text}\n      example: ${example}`);
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(`The configuration has ${count}:\n${lines.join('\n')}`);
    this.name = 'ConfigProblems';
    this.problems = problems;
  }
}

type Read = <S extends Section>(section: S, unused?: string) => Values<S>;

function toBase(values: Values<'process'>, warnings: readonly string[]) {
  return {
    /** Allowed but unwise settings, as messages for the log. */
    warnings,
    log: { level: values.LOG_LEVEL, format: values.LOG_FORMAT },
    trustedProxies: values.TRUSTED_PROXIES ?? new BlockList(),
  };
}

// The parts. They are built even when a variable was rejected, so that later problems are found in the same run. A part with a rejected
// (undefined) value is never returned, since loadConfig throws.
const load = {
  database: (read: Read) => read('database'),
  sync: (read: Read) => read('sync'),
  extract: (read: Read) => read('extract'),
  admin: (read: Read) => read('admin'),

  source(read: Read, draft: ConfigDraft) {
    const values = read('source');
    return { ...values, advertisers: loadAdvertisers(values, draft) };
  },

  accounts: (read: Read, draft: ConfigDraft) => loadAccounts(read('source', 'SOURCE_CREDENTIAL'), draft),

  /** With the limits of their connections, which are those of the source. */
  blobs(read: Read) {
    const { SOURCE_CONCURRENCY, SOURCE_TIMEOUT } = read('source', 'SOURCE_CREDENTIAL');
    return { ...read('blobs'), SOURCE_CONCURRENCY, SOURCE_TIMEOUT };
  },

  /** Null: prefill is off. */
  prefill(read: Read, draft: ConfigDraft) {
    const { PREFILL_KEY: key, PREFILL_RETURN_URLS: returnUrls, ...values } = read('prefill');
    if (!isWhole(values)) return null;
    return { ...values, sites: loadSites(read('source', 'SOURCE_CREDENTIAL'), { key, returnUrls }, draft) };
  },

  webhooks: (read: Read, draft: ConfigDraft) => loadWebhooks(read('webhooks'), draft),

  privacy(read: Read, draft: ConfigDraft) {
    const values = read('privacy');
    return { ...values, PRIVACY_KEY: values.PRIVACY_KEY ?? loadOwnKey(draft) };
  },
};

function isWhole<V extends object>(values: V): values is { [N in keyof V]: NonNullable<V[N]> } & V {
  return Object.values(values).every((value) => value !== null);
}

function loadOwnKey({ production, home, report }: ConfigDraft): Secret {
  try {
    if (!production) return loadLocalPrivacyKey(home);
  } catch (error) {
    report('PRIVACY_KEY', `is not set, and ${home}/privacy-key ${explainUnreadable(error)}`);
  }
  return new Secret('');
}

/** The value of one variable; null when it is absent, undefined when it was rejected and reported. */
function readSetting(name: string, setting: Setting, env: Environment, draft: ConfigDraft): unknown {
  const given = loadGiven(name, setting, env, draft);
  if (given === undefined) return undefined;
  const fallback = setting.default ?? (draft.production ? undefined : setting.developmentDefault);
  const chosen = given ?? (fallback === undefined ? null : new Secret(fallback));
  if (chosen === null && setting.developmentDefault === undefined) return null;
  if (chosen === null) return draft.report(name, 'is required in production');
  const { data, error } = setting.read.safeParse(chosen.reveal());
  const problem = error?.issues[0]?.message ?? (setting.secret === 'guarded' ? findShortness(chosen, draft) : null);
  if (problem !== null) return draft.report(name, `${problem}${chosen.file ? ` (read from ${chosen.file})` : ''}`);
  if (draft.accountsFile !== '' && ofOneAccount.includes(name)) {
    draft.report(name, 'and ADVERTISERS_FILE exclude each other: with several accounts it belongs in the file');
  }
  if (setting.secret) return chosen;
  if (draft.production && isPlain(data)) draft.warn(name, 'is http: all that is sent there can be read on the way');
  return data;
}

/** The text of a variable, from the variable itself or from its file; an empty text, or one of blanks only, counts as not set. */
function loadGiven(
  name: string,
  setting: Setting,
  env: Environment,
  { report }: ConfigDraft,
): Secret | null | undefined {
  const trimmed = env[name]?.trim() || null;
  // The blanks around a secret may belong to it.
  const text = setting.secret && trimmed !== null ? (env[name] ?? null) : trimmed;
  const file = (setting.secret && env[`${name}_FILE`]?.trim()) || null;
  if (file === null) return text === null ? null : new Secret(text);
  if (text !== null) {
    report(name, `and ${name}_FILE are both set: keep one of them`);
    return undefined;
  }
  try {
    const secret = loadSecret(file);
    if (secret.reveal() !== '') return secret;
    report(`${name}_FILE`, `names ${file}, which is empty`);
  } catch (error) {
    report(`${name}_FILE`, `names ${file}, which ${explainUnreadable(error)}`);
  }
  return undefined;
}

/** A line that sets the variable of a setting, or that of its file; one that is not read any more is set to nothing. */
function toLine(name: string): string {
  const setting = settings.get(name);
  if (setting) return `${name}=${toExample(setting)}`;
  return name.endsWith('_FILE') ? `${name}=/run/secrets/${name.slice(0, -5).toLowerCase()}` : `${name}=`;
}
