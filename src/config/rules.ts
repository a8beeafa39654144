// Rules over several variables: settings that require, exclude or endanger each other.
// Each rule gets the parsed values (null: absent; undefined: rejected and already reported) and reports by variable.

import { parsePostgresUrl } from '../domain/postgres-url.ts';
import type { Environment } from './local.ts';
import { isLoopback, longSecret } from './parsers.ts';
import type { Secret } from './secret.ts';
import type { Section, Values } from './settings.ts';

type Report = (name: string, text: string) => void;

/** The state while problems are collected. */
export interface ConfigDraft {
  readonly env: Environment;
  /** ADVERTISERS_FILE; empty for a single account. */
  readonly accountsFile: string;
  readonly production: boolean;
  /** The folder for state that no setting places elsewhere. */
  readonly home: string;
  readonly report: Report;
  readonly warn: Report;
}

type Partly<S extends Section> = { [N in keyof Values<S>]: Values<S>[N] | undefined };

export const rules: { [S in Section]?: (values: Partly<S>, draft: ConfigDraft) => void } = {
  database({ DATABASE_URL, DATABASE_DIRECT_URL }, draft) {
    const { env, production, report, warn } = draft;
    reportRemoved(removed.database, draft);
    if (production && DATABASE_URL?.reveal() === 'embedded')
      report('DATABASE_URL', 'is embedded, which is for development only: production needs a real database');
    for (const [name, url] of Object.entries({ DATABASE_URL, DATABASE_DIRECT_URL })) {
      const parsed = parsePostgresUrl(url?.reveal() ?? 'embedded');
      if (parsed === null) continue;
      const { host, mode, root } = parsed;
      if (mode === 'verify-ca' && (root === null || root === 'system'))
        report(name, 'has sslmode=verify-ca and no root certificate of yours: add sslrootcert, or use verify-full');
      if (mode === 'require' && root === 'system')
        report(name, 'is checked by what the system trusts, which proves the server only with sslmode=verify-full');
      if (mode === null && root === null && env.PGSSLMODE && !host.startsWith('/'))
        report(name, 'has no sslmode, and Intake does not read PGSSLMODE: add sslmode to it');
      const isNear = host === '' || host.startsWith('/') || isLoopback(host);
      const isEncrypted = mode === null ? root !== null : mode !== 'disable';
      if (production && !isNear && !isEncrypted)
        warn(name, 'does not require TLS: all may cross the network in the clear; add sslmode=verify-full');
    }
  },

  blobs: (_, draft) => reportRemoved(removed.blobs, draft),

  extract({ EXTRACT_URL, EXTRACT_SCHEDULE }, { report }) {
    if (EXTRACT_SCHEDULE && EXTRACT_URL === null) report('EXTRACT_URL', 'is required, since EXTRACT_SCHEDULE is set');
  },

  admin({ ADMIN_HOST, ADMIN_USER, ADMIN_PASSWORD }, { report }) {
    const open = ADMIN_HOST !== undefined && !isLoopback(ADMIN_HOST);
    const why = open
      ? 'is required, since ADMIN_HOST can be reached from other machines'
      : 'is required: set both ADMIN_USER and ADMIN_PASSWORD, or neither';
    if (ADMIN_USER === null && (open || ADMIN_PASSWORD)) report('ADMIN_USER', why);
    if (ADMIN_PASSWORD === null && (open || ADMIN_USER)) report('ADMIN_PASSWORD', why);
  },

  prefill({ HOST: _, PORT: __, PREFILL_TTL: ___, ...all }, { accountsFile, report }) {
    const group = Object.entries(all).filter(([name]) => accountsFile === '' || !ofOneAccount.includes(name));
    const absent = group.filter(([, value]) => value === null);
    if (absent.length === group.length) return;
    for (const [name] of absent) report(name, 'is required, since other prefill settings are set');
  },

  webhooks({ WEBHOOK_URL, WEBHOOK_SECRET }, { accountsFile, report }) {
    if (accountsFile !== '') return;
    if (WEBHOOK_URL && WEBHOOK_SECRET === null) report('WEBHOOK_SECRET', 'is required, since WEBHOOK_URL is set');
    if (WEBHOOK_SECRET && WEBHOOK_URL === null) report('WEBHOOK_URL', 'is required, since WEBHOOK_SECRET is set');
  },

  privacy({ PRIVACY_KEY }, { production, report }) {
    if (production && PRIVACY_KEY === null) report('PRIVACY_KEY', 'is required in production');
  },
};

/** Settings of earlier versions, by the section that used them. Each text says what took its place. */
const removed = {
  database: {
    DATABASE_CA: 'name the certificate with sslrootcert in DATABASE_URL',
    DATABASE_AUTH: 'write a token into the file of DATABASE_URL_FILE, which is read for each connection',
  },
  blobs: {
    S3_KMS_KEY_ID: "let the bucket's default encryption name the key, with S3_SSE=off",
  },
};

function reportRemoved(names: Readonly<Record<string, string>>, { env, report }: ConfigDraft): void {
  for (const [name, instead] of Object.entries(names)) {
    if (env[name]?.trim()) report(name, `is not read any more: ${instead}`);
  }
}

/** What is wrong with a secret that strangers may try to guess. */
export function findShortness(secret: Secret, { production }: ConfigDraft): string | null {
  if (!production || longSecret.safeParse(secret.reveal()).success) return null;
  return 'must be at least 16 characters long in production: openssl rand -hex 32 makes one';
}

/** What the file says of each account where there are several. */
export const ofOneAccount: readonly string[] = [
  ...['SOURCE_CREDENTIAL', 'ADVERTISER_ID', 'PREFILL_KEY', 'PREFILL_RETURN_URLS', 'WEBHOOK_URL', 'WEBHOOK_SECRET'],
];

/** True for an http address of another machine. */
export function isPlain(value: unknown): boolean {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  return url?.protocol === 'http:' && !isLoopback(url.hostname);
}
