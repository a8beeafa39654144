// The one table of settings: every variable with its meaning, default and parser.
// .env.example and docs/configuration.md are rendered from it; no other code may use a variable that is not here.

import type { z } from 'zod';
import * as read from './parsers.ts';
import type { Secret } from './secret.ts';

export interface Setting {
  readonly meaning: string;
  readonly read: z.ZodType<unknown, string>;
  /** Never printed, and also read from the file named by NAME_FILE. Guarded: strangers may guess at it, so in production it is long. */
  readonly secret?: true | 'guarded';
  readonly default?: string;
  /** The default outside production; in production the variable is required. */
  readonly developmentDefault?: string;
  /** What the absence of an optional variable means, for the documentation. */
  readonly absent?: string;
  readonly example?: string;
}

/** The settings by section. A command names the sections it needs and the others are not read, except `process`, which always is. */
export const sections = {
  database: {
    DATABASE_URL: {
      read: read.databaseUrl,
      secret: true,
      developmentDefault: 'embedded',
      example: 'postgres://intake:password@db.example.com:5432/intake',
      meaning: 'the Postgres database; `embedded` starts a local server, outside production only',
    },
    DATABASE_DIRECT_URL: {
      read: read.directUrl,
      secret: true,
      example: 'postgres://intake:password@db.example.com:5433/intake',
      absent: 'DATABASE_URL',
      meaning: 'the same database without a pooler, for migrations and LISTEN',
    },
  },
  source: {
    SOURCE_URL: {
      read: read.sourceUrl,
      example: 'https://api.example.com',
      absent: 'required by commands that ask the API, unless every account in ADVERTISERS_FILE has its url',
      meaning: "the API's {base_url}: scheme, host and optional path, without /v1",
    },
    SOURCE_CREDENTIAL: {
      read: read.credential,
      secret: true,
      example: 'the-credential-you-were-given',
      absent: 'required by commands that read the list, unless ADVERTISERS_FILE is set',
      meaning: 'sent as `Authorization: SWS <value>`',
    },
    ADVERTISER_ID: {
      read: read.advertiserId,
      example: '12345678',
      absent: 'learned from the first answer, then pinned; required if the answers contain no advertiser id',
      meaning: 'the account of the credential; an answer with another id halts it',
    },
    ADVERTISERS_FILE: {
      read: read.line,
      example: '/etc/intake/advertisers.json',
      absent: 'one account',
      meaning: 'a JSON list of accounts (docs/connect.md)',
    },
    SOURCE_FORMAT: { read: read.word('json', 'xml'), default: 'json', meaning: '`json` or `xml`; the rows are equal' },
    SOURCE_RATE: {
      read: read.rate,
      default: '10/s',
      meaning: 'requests per source by all workers together, evenly spaced; at least one a day, or `off`',
    },
    SOURCE_CONCURRENCY: { read: read.whole(1, 1000), default: '8', meaning: 'downloads at once per worker' },
    SOURCE_TIMEOUT: {
      read: read.timeout,
      default: '30s',
      meaning: 'a request without a byte for this long is aborted; every request is aborted after 10 minutes',
    },
  },
  sync: {
    SYNC_SCHEDULE: { read: read.schedule, default: '*/5 * * * *', meaning: 'when a worker polls: cron, or `off`' },
    SYNC_WITHIN: {
      read: read.duration,
      default: '20m',
      meaning:
        'an account that no poll read for this long is a problem; over twice the longest pause of SYNC_SCHEDULE, nights and weekends included',
    },
    RECHECK_SCHEDULE: { read: read.schedule, default: '17 3 * * *', meaning: 'when all is read again: cron, or `off`' },
    RECHECK_WITHIN: {
      read: read.duration,
      example: '15d',
      absent: '2d, or 14d if RECHECK_SCHEDULE is `off`',
      meaning: 'a proof that is older than this is a problem; choose about twice the longest pause of RECHECK_SCHEDULE',
    },
    AUDIT_SCHEDULE: { read: read.schedule, default: '*/10 * * * *', meaning: 'when a place is audited, or `off`' },
    SYNC_LAG: {
      read: read.duration,
      default: '15m',
      meaning: 'how far before the last poll a poll reads again, counted from when an id was first seen',
    },
    SYNC_START: {
      read: read.start,
      default: 'all',
      example: '2026-07-01',
      meaning: 'where the first sync begins: `all`, a date (at +10:00) or a time with its zone; rechecks read all',
    },
    LEASE: { read: read.lease, default: '30s', meaning: 'how long a dead process still holds its lane; at most `10m`' },
    ATTACHMENT_MAX_BYTES: { read: read.size, default: '50MB', meaning: 'a larger file is rejected' },
    VERIFY_WITHIN: { read: read.nights, default: '30d', meaning: 'how often every file is read again; at least `2d`' },
    SOURCE_HASH: {
      read: read.word('learn', 'always', 'never'),
      default: 'learn',
      meaning: 'may an equal Hash replace a download: `learn`, `always`, `never`',
    },
  },
  blobs: {
    BLOBS_URL: {
      read: read.blobsPlace,
      developmentDefault: 'file:.intake/blobs',
      example: 's3://applications/intake',
      meaning: 'where files are stored: `file:PATH` or `s3://bucket/prefix`',
    },
    S3_ENDPOINT: {
      read: read.serviceUrl,
      example: 'https://s3.example.com',
      absent: 'AWS',
      meaning: 'an S3-compatible store that is not AWS',
    },
    S3_REGION: { read: read.line, example: 'ap-southeast-2', absent: 'AWS_REGION', meaning: 'its region' },
    S3_FORCE_PATH_STYLE: { read: read.flag, default: 'false', meaning: '`true`: the bucket stands in the path' },
    S3_CHECKSUMS: {
      read: read.word('required', 'supported', 'off'),
      default: 'required',
      meaning: '`required`: with every put and where S3 requires them; `supported`: wherever possible; `off`: never',
    },
    S3_SSE: {
      read: read.word('off', 'AES256', 'aws:kms'),
      default: 'off',
      example: 'aws:kms',
      meaning: "encryption to request: `AES256` or `aws:kms`; `off`: the bucket's own, such as a key of yours",
    },
  },
  extract: {
    EXTRACT_URL: {
      read: read.blobsPlace,
      example: 's3://analytics/intake',
      absent: '`intake extract` needs --to, and a worker writes none',
      meaning: 'where extracts are written: `file:PATH` or `s3://bucket/prefix`, with the same S3 settings',
    },
    EXTRACT_SCHEDULE: {
      read: read.schedule,
      default: 'off',
      example: '41 2 * * *',
      meaning: 'when a worker extracts what has changed since the last extract: cron, or `off`',
    },
    EXTRACT_WITHIN: {
      read: read.duration,
      default: '2d',
      meaning: 'an older extract is a problem, with EXTRACT_SCHEDULE; choose about twice its longest pause',
    },
    EXTRACT_KEEP: { read: read.whole(2, 1000), default: '7', meaning: 'how many snapshots stay at the target' },
  },
  admin: {
    ADMIN_HOST: {
      read: read.host,
      default: '127.0.0.1',
      meaning: 'where the status page, /proof, /metrics, /livez, /readyz and /api/status listen',
    },
    ADMIN_PORT: { read: read.whole(0, 65_535), default: '9090', meaning: 'their port; 0 takes a free one' },
    ADMIN_USER: {
      read: read.line,
      example: 'operator',
      absent: 'required beyond this machine',
      meaning: 'the login of the admin port; probes need none',
    },
    ADMIN_PASSWORD: {
      read: read.line,
      secret: 'guarded',
      absent: 'required beyond this machine',
      meaning: "that user's password",
    },
  },
  prefill: {
    HOST: { read: read.host, default: '127.0.0.1', meaning: 'the address on which the prefill routes listen' },
    PORT: { read: read.whole(0, 65_535), default: '8080', meaning: 'their port; 0 takes a free one' },
    AUTH_URL: { read: read.serviceUrl, example: 'https://auth.example.com', meaning: '{auth_url}: the OAuth server' },
    OAUTH_CLIENT_ID: { read: read.line, example: 'your-client-id', meaning: 'the OAuth client that asks for profiles' },
    OAUTH_CLIENT_SECRET: {
      read: read.line,
      secret: true,
      example: 'your-client-secret',
      meaning: "that client's secret",
    },
    OAUTH_REDIRECT_URI: {
      read: read.serviceUrl,
      example: 'https://intake.example.com/prefill/callback',
      meaning: 'the public address of /prefill/callback, as registered for the client',
    },
    PREFILL_RETURN_URLS: {
      read: read.prefixes,
      example: 'https://careers.example.com/,https://jobs.example.com/apply/',
      absent: 'prefill is off, or ADVERTISERS_FILE has one for each account',
      meaning: 'comma-separated prefixes that return_url and form_url must begin with',
    },
    PREFILL_KEY: {
      read: read.bearerToken,
      secret: 'guarded',
      absent: 'prefill is off, or ADVERTISERS_FILE has one for each account',
      meaning: 'redeems handles, sent as `Authorization: Bearer` by the careers site',
    },
    SESSION_SECRET: { read: read.line, secret: 'guarded', meaning: 'signs links to resumes' },
    PREFILL_TTL: { read: read.duration, default: '24h', meaning: 'how long a profile that nobody redeems is kept' },
  },
  webhooks: {
    WEBHOOK_URL: {
      read: read.webhookUrl,
      example: 'https://ats.example.com/webhooks/intake',
      absent: 'no webhook',
      meaning: 'where a worker sends every event (docs/integrate.md); several: ADVERTISERS_FILE',
    },
    WEBHOOK_SECRET: {
      read: read.webhookSecrets,
      secret: true,
      example: 'whsec_bm90IGEgc2VjcmV0OiBtYWtlIHlvdXIgb3duIG9uZSE=',
      absent: 'required with WEBHOOK_URL',
      meaning: 'signs them; two, separated by a space, while you rotate',
    },
    WEBHOOK_ALLOW_PRIVATE: { read: read.flag, default: 'false', meaning: '`true` also sends to private addresses' },
  },
  privacy: {
    PRIVACY_KEY: {
      read: read.longSecret,
      secret: true,
      absent: 'kept in .intake/ outside production, required in production',
      meaning: 'the key of the hashes that keep erased people out; at least 16 characters; never change it',
    },
    RETENTION: {
      read: read.durationOrOff,
      default: 'off',
      example: '365d',
      meaning: 'records stored longer ago than this are erased (docs/protect-people.md); `off` keeps everything',
    },
  },
  process: {
    TRUSTED_PROXIES: {
      read: read.networks,
      example: '10.0.0.0/8,192.0.2.7',
      absent: 'nobody',
      meaning: 'addresses and networks of reverse proxies, comma-separated: whose X-Forwarded-For is believed',
    },
    NODE_ENV: {
      read: read.word('production', 'development', 'test'),
      default: 'development',
      example: 'production',
      meaning: '`production` requires the settings marked so and rejects those for development; the image sets it',
    },
    LOG_LEVEL: {
      read: read.word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
      default: 'info',
      meaning: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
    },
    LOG_FORMAT: {
      read: read.word('auto', 'json', 'pretty'),
      default: 'auto',
      meaning: '`json`, `pretty`, or `auto`: pretty on a terminal, JSON elsewhere',
    },
  },
} as const satisfies Record<string, Record<string, Setting>>;

export type Section = keyof typeof sections;

/** The parsed values of a section, by variable; null where an optional variable is absent. */
export type Values<S extends Section> = { [N in keyof (typeof sections)[S]]: ValueOf<(typeof sections)[S][N]> };

/** A valid text; one for a secret that has no form of its own. */
export const toExample = (setting: Setting) => setting.example ?? setting.default ?? 'a-long-random-text';

export const settings: ReadonlyMap<string, Setting> = new Map(
  Object.values(sections).flatMap((section) => Object.entries<Setting>(section)),
);

type ValueOf<S> =
  | (S extends { readonly secret: unknown }
      ? Secret
      : S extends { readonly read: z.ZodType }
        ? z.output<S['read']>
        : never)
  | (S extends { readonly default: string } | { readonly developmentDefault: string } ? never : null);
