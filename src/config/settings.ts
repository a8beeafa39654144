// The one table of settings: every variable with its meaning, default and parser.
// .env.example and docs/configuration.md are rendered from it; no other code may use a variable that is not here.

import type { z } from 'zod';
import * as read from './parsers.ts';
import type { Secret } from './secret.ts';

export interface Setting {
  readonly meaning: string;
  readonly read: z.ZodType<unknown, string>;
  /** Never printed, and also read from the file named by NAME_FILE. */
  readonly secret?: true;
  /** A secret that strangers may try to guess: at least 16 characters in production. */
  readonly guarded?: true;
  readonly default?: string;
  /** The default outside production; in production the variable is required. */
  readonly developmentDefault?: string;
  /** What the absence of an optional variable means, for the documentation. */
  readonly absent?: string;
  /** A valid value; where omitted, the default is the example. */
  readonly example?: string;
}

/** The settings by section. A command names the sections it needs and the others are not read, except `process`, which always is. */
export const sections = {
  database: {
    DATABASE_URL: {
      secret: true,
      meaning: 'the Postgres database; `embedded` starts a local server, outside production only',
      example: 'postgres://intake:password@db.example.com:5432/intake',
      read: read.databaseUrl,
      developmentDefault: 'embedded',
    },
    DATABASE_DIRECT_URL: {
      secret: true,
      meaning: 'the same database without a pooler, for `intake migrate` and LISTEN',
      example: 'postgres://intake:password@db.example.com:5433/intake',
      read: read.directUrl,
      absent: 'DATABASE_URL',
    },
  },
  source: {
    SOURCE_URL: {
      meaning: "the API's {base_url}: scheme, host and optional path, without /v1",
      example: 'https://api.example.com',
      read: read.sourceUrl,
      absent: 'required by commands that ask the API, unless every account in ADVERTISERS_FILE has its url',
    },
    SOURCE_CREDENTIAL: {
      secret: true,
      meaning: 'sent as `Authorization: SWS <value>`',
      example: 'the-credential-you-were-given',
      read: read.credential,
      absent: 'required by commands that read the list, unless ADVERTISERS_FILE is set',
    },
    ADVERTISER_ID: {
      meaning: 'the account of the credential; an answer with another id halts it',
      example: '12345678',
      read: read.advertiserId,
      absent: 'learned from the first answer, then pinned; required if the answers contain no advertiser id',
    },
    ADVERTISERS_FILE: {
      meaning: 'several accounts: a JSON list (docs/connect.md)',
      example: '/etc/intake/advertisers.json',
      read: read.line,
      absent: 'one account',
    },
    SOURCE_FORMAT: {
      meaning: '`json` or `xml`; switching changes no stored value',
      read: read.word('json', 'xml'),
      default: 'json',
    },
    SOURCE_RATE: {
      meaning: 'requests per source, shared by all workers, evenly spaced; at least one a day, or `off`',
      read: read.rate,
      default: '10/s',
    },
    SOURCE_CONCURRENCY: {
      meaning: 'downloads at once per worker',
      read: read.whole(1, 1000),
      default: '8',
    },
    SOURCE_TIMEOUT: {
      meaning: 'a request without a byte for this long is aborted; every request is aborted after 10 minutes',
      read: read.timeout,
      default: '30s',
    },
  },
  sync: {
    SYNC_SCHEDULE: {
      meaning: 'when a worker polls: cron of five or six fields, or `off`; also once at start',
      read: read.schedule,
      default: '*/5 * * * *',
    },
    SYNC_WITHIN: {
      meaning:
        'an advertiser that no poll has read within this time is a problem; choose more than twice the longest pause of SYNC_SCHEDULE, nights and weekends included',
      read: read.duration,
      default: '20m',
    },
    RECHECK_SCHEDULE: {
      meaning: 'when everything is read again, which renews the proof: cron, or `off`',
      read: read.schedule,
      default: '17 3 * * *',
    },
    RECHECK_WITHIN: {
      meaning: 'a proof that is older than this is a problem; choose about twice the longest pause of RECHECK_SCHEDULE',
      read: read.duration,
      example: '15d',
      absent: '2d, or 14d if RECHECK_SCHEDULE is `off`',
    },
    AUDIT_SCHEDULE: {
      meaning: 'when a worker audits a random place of the list: cron, or `off`',
      read: read.schedule,
      default: '*/10 * * * *',
    },
    SYNC_LAG: {
      meaning: 'how far before the last poll a poll reads again, counted from when an id was first seen',
      read: read.duration,
      default: '15m',
    },
    SYNC_START: {
      meaning:
        'where the first sync begins: `all`, a date (from midnight +10:00) or a time with its zone; the first recheck reads everything older',
      example: '2026-07-01',
      read: read.start,
      default: 'all',
    },
    LEASE: {
      meaning: 'how long a dead process still holds its lane; at most `10m`',
      read: read.lease,
      default: '30s',
    },
    ATTACHMENT_MAX_BYTES: {
      meaning: 'a larger file is rejected',
      read: read.size,
      default: '50MB',
    },
    VERIFY_WITHIN: {
      meaning: 'every stored file is read again within this time; at least `2d`',
      read: read.nights,
      default: '30d',
    },
    SOURCE_HASH: {
      meaning: 'whether an equal Hash replaces a download: `learn`, `always` or `never`',
      read: read.word('learn', 'always', 'never'),
      default: 'learn',
    },
  },
  blobs: {
    BLOBS_URL: {
      meaning: 'where files are stored: `file:PATH` or `s3://bucket/prefix`',
      example: 's3://applications/intake',
      read: read.blobsPlace,
      developmentDefault: 'file:.intake/blobs',
    },
    S3_ENDPOINT: {
      meaning: 'an S3-compatible store that is not AWS',
      example: 'https://s3.example.com',
      read: read.serviceUrl,
      absent: 'AWS',
    },
    S3_REGION: {
      meaning: 'its region; credentials come from the usual AWS_* variables',
      example: 'ap-southeast-2',
      read: read.line,
      absent: 'AWS_REGION',
    },
    S3_FORCE_PATH_STYLE: {
      meaning: '`true` puts the bucket into the path, as many compatible stores require',
      read: read.flag,
      default: 'false',
    },
    S3_CHECKSUMS: {
      meaning: '`required`: with every put and where S3 requires them; `supported`: wherever possible; `off`: never',
      read: read.word('required', 'supported', 'off'),
      default: 'required',
    },
    S3_SSE: {
      meaning: "encryption at rest to request: `AES256` or `aws:kms`; `off` uses the bucket's own setting",
      example: 'aws:kms',
      read: read.word('off', 'AES256', 'aws:kms'),
      default: 'off',
    },
    S3_KMS_KEY_ID: {
      meaning: 'the key of `aws:kms`: its id, ARN or alias',
      example: 'arn:aws:kms:ap-southeast-2:123456789012:key/0f4e1c2a',
      read: read.line,
      absent: "the account's default key",
    },
  },
  extract: {
    EXTRACT_URL: {
      meaning: 'where extracts are written: `file:PATH` or `s3://bucket/prefix`, with the same S3 settings',
      example: 's3://analytics/intake',
      read: read.blobsPlace,
      absent: '`intake extract` needs --to, and a worker writes none',
    },
    EXTRACT_SCHEDULE: {
      meaning: 'when a worker extracts what has changed since the last extract: cron, or `off`',
      example: '41 2 * * *',
      read: read.schedule,
      default: 'off',
    },
    EXTRACT_WITHIN: {
      meaning:
        'with EXTRACT_SCHEDULE, an extract that is older than this is a problem; choose about twice its longest pause',
      read: read.duration,
      default: '2d',
    },
    EXTRACT_KEEP: {
      meaning: 'how many snapshots stay at the target; older ones are deleted',
      read: read.whole(2, 1000),
      default: '7',
    },
  },
  admin: {
    ADMIN_HOST: {
      meaning: 'the address on which the status page, /proof, /metrics, /livez, /readyz and /api/status listen',
      read: read.line,
      default: '127.0.0.1',
    },
    ADMIN_PORT: {
      meaning: 'their port; 0 takes a free one',
      read: read.whole(0, 65_535),
      default: '9090',
    },
    ADMIN_USER: {
      meaning: 'the login of the admin port; probes need none',
      example: 'operator',
      read: read.line,
      absent: 'required when ADMIN_HOST is not this machine',
    },
    ADMIN_PASSWORD: {
      secret: true,
      guarded: true,
      meaning: "that user's password; at least 16 characters in production",
      example: 'a-long-random-text',
      read: read.line,
      absent: 'required when ADMIN_HOST is not this machine',
    },
  },
  prefill: {
    HOST: {
      meaning: 'the address on which the prefill routes listen',
      read: read.line,
      default: '127.0.0.1',
    },
    PORT: {
      meaning: 'their port; 0 takes a free one',
      read: read.whole(0, 65_535),
      default: '8080',
    },
    AUTH_URL: {
      meaning: '{auth_url}: the host of the authorization and token endpoints',
      example: 'https://auth.example.com',
      read: read.serviceUrl,
      absent: 'prefill is off',
    },
    OAUTH_CLIENT_ID: {
      meaning: 'the OAuth client that requests the profiles of candidates',
      example: 'your-client-id',
      read: read.line,
      absent: 'prefill is off',
    },
    OAUTH_CLIENT_SECRET: {
      secret: true,
      meaning: "that client's secret",
      example: 'your-client-secret',
      read: read.line,
      absent: 'prefill is off',
    },
    OAUTH_REDIRECT_URI: {
      meaning: 'the public address of /prefill/callback, as registered for the client',
      example: 'https://intake.example.com/prefill/callback',
      read: read.serviceUrl,
      absent: 'prefill is off',
    },
    PREFILL_RETURN_URLS: {
      meaning: 'comma-separated prefixes that return_url and form_url must begin with',
      example: 'https://careers.example.com/,https://jobs.example.com/apply/',
      read: read.prefixes,
      absent: 'prefill is off, or ADVERTISERS_FILE has one for each account',
    },
    PREFILL_KEY: {
      secret: true,
      guarded: true,
      meaning:
        'the token that the careers site sends as `Authorization: Bearer` to redeem a handle; at least 16 characters in production',
      example: 'a-long-random-text',
      read: read.bearerToken,
      absent: 'prefill is off, or ADVERTISERS_FILE has one for each account',
    },
    SESSION_SECRET: {
      secret: true,
      guarded: true,
      meaning: 'signs the links to resumes; at least 16 characters in production',
      example: 'a-long-random-text',
      read: read.line,
      absent: 'prefill is off',
    },
    PREFILL_TTL: {
      meaning: 'how long a profile that was never redeemed is kept',
      read: read.duration,
      default: '24h',
    },
  },
  webhooks: {
    WEBHOOK_URL: {
      meaning: 'where a worker sends every event (docs/integrate.md); several: ADVERTISERS_FILE',
      example: 'https://ats.example.com/webhooks/intake',
      read: read.webhookUrl,
      absent: 'no webhook',
    },
    WEBHOOK_SECRET: {
      secret: true,
      meaning: 'signs them; two, separated by a space, while you rotate',
      example: 'whsec_bm90IGEgc2VjcmV0OiBtYWtlIHlvdXIgb3duIG9uZSE=',
      read: read.webhookSecrets,
      absent: 'required with WEBHOOK_URL',
    },
    WEBHOOK_ALLOW_PRIVATE: {
      meaning: '`true` also sends to private, link-local and loopback addresses',
      read: read.flag,
      default: 'false',
    },
  },
  privacy: {
    PRIVACY_KEY: {
      secret: true,
      meaning: 'the key of the hashes that keep erased people out; at least 16 characters; never change it',
      example: 'a-long-random-text',
      read: read.longSecret,
      absent: 'kept in .intake/ outside production, required in production',
    },
    RETENTION: {
      meaning: 'records stored longer ago than this are erased (docs/protect-people.md); `off` keeps everything',
      example: '365d',
      read: read.durationOrOff,
      default: 'off',
    },
  },
  process: {
    TRUSTED_PROXIES: {
      meaning:
        'addresses and networks of your reverse proxies, comma-separated; only their X-Forwarded-For tells whose request it is',
      example: '10.0.0.0/8,192.0.2.7',
      read: read.networks,
      absent: 'nobody',
    },
    NODE_ENV: {
      meaning: '`production` requires the settings marked so and rejects those for development; the image sets it',
      example: 'production',
      read: read.word('production', 'development', 'test'),
      default: 'development',
    },
    LOG_LEVEL: {
      meaning: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
      read: read.word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
      default: 'info',
    },
    LOG_FORMAT: {
      meaning: '`json`, `pretty`, or `auto`: pretty on a terminal, JSON elsewhere',
      read: read.word('auto', 'json', 'pretty'),
      default: 'auto',
    },
  },
} as const satisfies Record<string, Record<string, Setting>>;

export type Section = keyof typeof sections;

/** The parsed values of a section, by variable; null where an optional variable is absent. */
export type Values<S extends Section> = { [N in keyof (typeof sections)[S]]: ValueOf<(typeof sections)[S][N]> };

export const settings: ReadonlyMap<string, Setting> = new Map(
  Object.values(sections).flatMap((section) => Object.entries<Setting>(section)),
);

type ValueOf<S> =
  | (S extends { readonly secret: true }
      ? Secret
      : S extends { readonly read: z.ZodType }
        ? z.output<S['read']>
        : never)
  | (S extends { readonly default: string } | { readonly developmentDefault: string } ? never : null);
