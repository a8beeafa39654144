// Parses the text of a variable into a value: durations, sizes, rates, schedules, addresses.
// No message repeats the rejected text: a pasted credential must not appear in an error.

import { BlockList, isIP } from 'node:net';
import { validate as isCron } from 'node-cron';
import { z } from 'zod';
import { parsePostgresUrl } from '../domain/postgres-url.ts';

const dayMs = 86_400_000;

export const duration = value('must be a time: a number and ms, s, m, h or d, at most 36500d', toDurationMs);

/** The duration of a lease, at most ten minutes. A lease in the database that lasts longer shows that the clock was set back. */
export const lease = value('must be a time of at most 10m', (text) => toDurationMs(text, 1, 600_000));

/** The duration of a timer. Node fires one of more than 24 days at once. */
export const timeout = value('must be a time of at most 1d', (text) => toDurationMs(text, 1, dayMs));

/** A duration of at least two days, so that it contains two nights. */
export const nights = value('must be a time of at least 2d', (text) => toDurationMs(text, 2 * dayMs));

export const durationOrOff = value('must be a time (a number and ms, s, m, h or d, at most 36500d) or off', (text) =>
  text === 'off' ? null : toDurationMs(text),
);

/** A number of bytes: plain, in powers of 1000 (`50MB`) or of 1024 (`8MiB`). */
export const size = value('must be a size: a number and B, kB, MB, GB, KiB, MiB or GiB', (text) => {
  const match = /^(\d+(?:\.\d+)?)\s*([kmg]i?b|b)?$/i.exec(text);
  if (!match) return undefined;
  const sizeBytes = Math.floor(Number(match[1]) * (bytesPer[(match[2] ?? 'b').toLowerCase()] ?? Number.NaN));
  return sizeBytes > 0 && Number.isSafeInteger(sizeBytes) ? sizeBytes : undefined;
});

/** Requests per second, or null for `off`. */
export const rate = value('must be a rate (a number, then /s, /m or /h), at least one a day, or off', (text) => {
  if (text === 'off') return null;
  const match = /^(\d+(?:\.\d+)?)\s*\/\s*([smh])$/.exec(text);
  if (!match) return undefined;
  const perSecond = Number(match[1]) / (secondsPer[match[2] ?? ''] ?? Number.NaN);
  return perSecond >= 1_000 / dayMs ? perSecond : undefined;
});

export const schedule = value('must be a cron text of five or six fields, or off', (text) => {
  if (text === 'off') return null;
  return [5, 6].includes(text.split(/\s+/).length) && isCron(text) ? text : undefined;
});

/** The instant from which the first sync reads, in milliseconds since the epoch, or null for `all`. */
// Spec: dates in queries are Australian Eastern Standard time, so a day without a zone begins at midnight +10:00.
export const start = value(
  'must be all, a date (2026-07-01) or a time with its zone (2026-07-01T09:00:00+10:00)',
  (text) => {
    if (text === 'all') return null;
    if (z.iso.date().safeParse(text).success) return Date.parse(`${text}T00:00:00+10:00`);
    return z.iso.datetime({ offset: true }).safeParse(text).success ? Date.parse(text) : undefined;
  },
);

export function word<const W extends readonly [string, string, ...string[]]>(...words: W) {
  return z.enum(words, { error: `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}` });
}

export const flag = word('true', 'false').transform((text) => text === 'true');

export function whole(least: number, most: number) {
  return value(`must be a whole number from ${least} to ${most}`, (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    return number >= least && number <= most ? number : undefined;
  });
}

/** An advertiser's id: a positive integer that fits a bigint column, exact beyond 2^53. */
export const advertiserId = value('must be the digits of a positive integer', (text) => {
  const id = /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
  return id > 0n && id < 2n ** 63n ? id : undefined;
});

export const line = value('must not contain control characters', (text) => (hasControl(text) ? undefined : text));

/** An address to listen on, as a URL has it: IPv6 in brackets. */
export const host = line.transform((text) => (text.includes(':') && !text.startsWith('[') ? `[${text}]` : text));

/** A secret that cannot be guessed by trying: at least 16 characters, none of them a control character. */
export const longSecret = value(
  'must be at least 16 characters long, without control characters: openssl rand -hex 32 makes one',
  (text) => (text.trim().length >= 16 && !hasControl(text) ? text : undefined),
);

/** The value of `Authorization: SWS <value>`. */
export const credential = value(
  'must be visible ASCII without spaces around it, and without the word SWS (which is added)',
  (text) => (/^[!-~](?:[ -~]*[!-~])?$/.test(text) && !/^SWS\s/i.test(text) ? text : undefined),
);

/** The value of `Authorization: Bearer <value>`. RFC 6750 allows no other characters, and servers reject a token that has them. */
export const bearerToken = value(
  'must be letters, digits and - . _ ~ + / only (= at its end): it is sent as a bearer token, which cannot carry spaces or other characters',
  (text) => (/^[A-Za-z0-9._~+/-]+=*$/.test(text) ? text : undefined),
);

/** Secrets of Standard Webhooks. Two while a receiver changes from one to the other. */
export const webhookSecrets = value(
  'must be whsec_ followed by 24 to 64 random bytes in base64; two of them, separated by a space, while you rotate: echo whsec_$(openssl rand -base64 32) makes one',
  (text) => {
    const secrets = text.trim().split(/\s+/);
    return secrets.length <= 2 && secrets.every(isWebhookSecret) ? secrets : undefined;
  },
);

function isWebhookSecret(text: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]{32,86}={0,2})$/.exec(text) ?? [];
  const { length } = Buffer.from(base64, 'base64');
  return length >= 24 && length <= 64 && base64.length % 4 === 0;
}

const sslParameters = ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation'];
/** The driver would ignore any other word and connect without TLS or without channel binding. */
const sslWords = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  ssl: ['true', 'false'],
  sslnegotiation: ['postgres', 'direct'],
  channel_binding: ['disable', 'prefer', 'require'],
};

export const databaseUrl = postgresUrl(
  'must be a postgres:// address or embedded; special characters in its password are percent-encoded (# as %23, / as %2F)',
  (text) => text === 'embedded' || isPostgres(text),
);

export const directUrl = postgresUrl('must be a postgres:// address', isPostgres);

function postgresUrl(refusal: string, isRead: (text: string) => boolean) {
  return z.string().superRefine((text, context) => {
    const parsed = parsePostgresUrl(text);
    const problem = isRead(text) ? parsed && findParameterProblem(parsed.parameters) : refusal;
    if (parsed?.host.includes(',')) context.addIssue(severalHosts);
    else if (problem !== null) context.addIssue(problem);
  });
}

const severalHosts =
  'names several hosts; name one address that leads to the primary: the writer endpoint of the service, or a proxy in front';

function findParameterProblem(given: URLSearchParams): string | null {
  const names = [...given.keys()];
  const port = given.get('port');
  const isPort = port === null || (/^\d{1,5}$/.test(port) && Number(port) < 65_536);
  const other = Object.entries(sslWords).find(([name, words]) => !words.includes(given.get(name) ?? words[0] ?? ''));
  if (names.some((name) => /^ssl/i.test(name) && !sslParameters.includes(name)))
    return `has an unknown TLS parameter; known are ${sslParameters.join(', ')}`;
  if (new Set(names).size < names.length) return 'names a parameter twice';
  if (other) return `must have as ${other[0]} one of ${other[1].join(', ')}`;
  if (!isPort) return 'must have a number up to 65535 as port';
  const isWhole = given.has('sslcert') === given.has('sslkey');
  return isWhole ? null : 'names one of sslcert and sslkey, which belong together';
}

/** The address of a web service, without credentials, query or trailing slash. */
export const serviceUrl = value('must be an http(s) address without user, password, query or #', toServiceUrl);

/** The address of a webhook. Its path and query may hold a token, so that messages name only its host. */
export const webhookUrl = value('must be an http(s) address without user, password or #', (text) => {
  const url = URL.parse(text);
  const isUsable = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !text.includes('#');
  return isUsable ? url.href : undefined;
});

/** {base_url}: a service address to which `/v1/...` will be added. */
export const sourceUrl = value(
  'must be an http(s) address without user, password, query or #, and without /v1 (which is added)',
  (text) => {
    const url = toServiceUrl(text);
    return url === undefined || /\/v[12](?:$|\/(?:advertiser|applications|resumes))/.test(url) ? undefined : url;
  },
);

/** Address prefixes, separated by commas. Each ends in a path, so that no prefix is the beginning of another host. */
export const prefixes = value('must be http(s) addresses separated by commas', (text) => {
  const urls = text.split(',').map((part) => toServiceUrl(part.trim()) && new URL(part.trim()).href);
  return urls.every((url) => url !== undefined && url !== '') ? (urls as string[]) : undefined;
});

export const networks = value('must be addresses and networks (10.0.0.0/8), separated by commas', (text) => {
  const list = new BlockList();
  for (const part of text.split(',')) {
    const [address = '', bits = isIP(address) === 6 ? '128' : '32', ...more] = part.trim().split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    const isNetwork = /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 'ipv6' ? 128 : 32);
    if (isIP(address) === 0 || !isNetwork || more.length > 0) return undefined;
    list.addSubnet(address, Number(bits), family);
  }
  return list;
});

const blobsRefusal =
  'must be file:PATH or s3://bucket/prefix: the bucket of 3 to 63 lower-case letters, digits, dots and hyphens, the prefix without ? and #';

/** Where files are stored: a folder, or a bucket with a prefix, without slashes at its ends, that may be empty. */
export type BlobsPlace = z.output<typeof blobsPlace>;
export const blobsPlace = value(blobsRefusal, (text) => {
  const disk = /^file:(?:\/\/(?=\/))?(.+)$/.exec(text)?.[1];
  if (disk !== undefined && !disk.startsWith('//')) return { kind: 'disk' as const, path: disk };
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^?#]*))?$/.exec(text) ?? [];
  return bucket === undefined ? undefined : { kind: 's3' as const, bucket, prefix: prefix.replace(/^\/+|\/+$/g, '') };
});

export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127(?:\.\d{1,3}){3}$/.test(host) || /^\[?::1\]?$/.test(host);
}

const bytesPer: Record<string, number> = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 };
const secondsPer: Record<string, number> = { s: 1, m: 60, h: 3600 };
const msPer: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: dayMs };

/** At most a hundred years by default: no date that is counted from now lies outside of what Postgres can hold. */
function toDurationMs(text: string, leastMs = 1, mostMs = 36_500 * dayMs): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(text);
  if (!match) return undefined;
  const ms = Math.round(Number(match[1]) * (msPer[match[2] ?? ''] ?? Number.NaN));
  return ms >= leastMs && ms <= mostMs ? ms : undefined;
}

function toServiceUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return undefined;
  return /[?#]/.test(text) ? undefined : url.href.replace(/\/+$/, '');
}

function isPostgres(text: string): boolean {
  // psql accepts an empty host where a parameter names it; URL.parse does not.
  return parsePostgresUrl(text) !== null && URL.parse(text.replace('@/', '@host/'))?.hash === '';
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

function value<T>(refusal: string, read: (text: string) => T | undefined) {
  return z.string().transform((text, context) => {
    const result = read(text);
    if (result !== undefined) return result;
    context.addIssue(refusal);
    return z.NEVER;
  });
}
