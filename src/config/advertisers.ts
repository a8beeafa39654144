// Reads several accounts from one file: each has a name, a credential, where it differs from SOURCE_URL an address, and the careers site
// that may prefill its forms and the webhooks that get its events.
// Problems name the file and the position in it, never a value: the file holds credentials.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type Detail, type EventType, eventTypes } from '../domain/webhook.ts';
import * as read from './parsers.ts';
import { explainUnreadable, loadSecret, Secret } from './secret.ts';

export interface Account {
  readonly name: string;
  readonly url: string;
  /** Null until it is learned from the first answer. */
  readonly advertiserId: bigint | null;
}

export interface Advertiser extends Account {
  readonly credential: Secret;
}

export interface SiteAccount extends Account {
  /** Null: the settings of the single account count, or prefill is off for this account. */
  readonly site: CareersSite | null;
}

/** The careers site of an account: only its key redeems the account's handles, and browsers return only to its addresses. */
export interface CareersSite {
  readonly key: Secret;
  readonly returnUrls: readonly string[];
}

/** Reads the accounts of a file with their credentials. Every problem goes to `report`, not only the first. */
export function loadAdvertisers(file: string, url: string | null, report: Report): Advertiser[] {
  return loadList(file, url, report).flatMap(({ account, at, ...given }) => {
    const credential = loadOne(file, at, given, 'credential', read.credential, report);
    return credential === undefined ? [] : [{ ...account, credential }];
  });
}

/** Reads the accounts of a file with their careers sites. Their credentials are not read. */
export function loadAccounts(file: string, url: string | null, report: Report): SiteAccount[] {
  const accounts = loadList(file, url, report).flatMap(({ account, at, ...given }): SiteAccount[] => {
    const { prefillKey, prefillKeyFile, prefillReturnUrls } = given;
    if ((prefillKey ?? prefillKeyFile ?? prefillReturnUrls) === undefined) return [{ ...account, site: null }];
    if (prefillReturnUrls === undefined) report(`${at} needs prefillReturnUrls beside its key for prefills`);
    const key = loadOne(file, at, given, 'prefillKey', read.bearerToken, report);
    return key === undefined ? [] : [{ ...account, site: { key, returnUrls: prefillReturnUrls?.flat() ?? [] } }];
  });
  const keys = accounts.flatMap(({ site }) => site?.key.reveal() ?? []);
  if (new Set(keys).size < keys.length) report(`${file}: two accounts have the same key for prefills`);
  return accounts;
}

/** An endpoint of webhooks, and the account whose events it gets. */
export interface WebhookEndpoint {
  readonly account: string;
  /** Unique in the configuration. */
  readonly name: string;
  readonly url: string;
  readonly secret: Secret;
  /** Null: every type. */
  readonly types: readonly EventType[] | null;
  /** Which row of the application a message holds; null: none. */
  readonly detail: Detail | null;
}

/** Reads the endpoints of a file, and the names of its accounts. */
export function loadWebhooks(file: string, report: Report) {
  const list = loadList(file, '', report);
  const endpoints = list.flatMap(({ account: { name: account }, at, webhooks = [] }) =>
    webhooks.flatMap((given, index): WebhookEndpoint[] => {
      const place = `${at}.webhooks[${index}]`;
      const { url, events = null, full = false, name = account } = given;
      const secret = loadOne(file, place, given, 'secret', read.webhookSecrets, report);
      const detail = full === false ? null : full === true ? 'anonymous' : 'personal';
      return secret === undefined ? [] : [{ account, name, url, secret, types: events, detail }];
    }),
  );
  const names = endpoints.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) report(`${file}: two webhooks are called ${twice}: give each a name of its own`);
  return { accounts: list.map(({ account }) => account.name), endpoints };
}

type Report = (text: string) => void;

function loadList(file: string, url: string | null, report: Report) {
  const written = loadJson(file, report);
  if (written === undefined) return [];
  const { data = [], error } = accountList.safeParse(written);
  for (const issue of error?.issues ?? []) report(`${file}: ${toPlace(issue.path)} ${issue.message}`);
  return data.map(({ name, url: own, advertiserId = null, ...given }, index) => {
    const at = `${file}: [${index}]`;
    if (own === undefined && url === null) report(`${at}.url is required, since SOURCE_URL is not set`);
    return { account: { name, url: own ?? url ?? '', advertiserId }, at, ...given };
  });
}

const unknownMember: z.core.$ZodErrorMap = (issue) =>
  issue.code === 'unrecognized_keys' ? `has an unknown member ${issue.keys.join(', ')}` : 'must be an object';

const shortName = z
  .string('is required')
  .regex(/^[A-Za-z0-9][\w.-]{0,99}$/, 'must be letters, digits, dot, dash or underscore');

const path = z.string('must be a path').min(1, 'must be a path');

/** The words with which an operator says that people's data goes to an endpoint. */
const withPeople = 'with personal data';

const eventType = z.enum(eventTypes, 'must be types of events (docs/integrate.md)');

const webhook = z
  .strictObject(
    {
      name: shortName.optional(),
      url: read.webhookUrl,
      secret: z.string('must be a text').optional(),
      secretFile: path.optional(),
      events: z.array(eventType, 'must be a list of types').min(1, 'must name a type').optional(),
      full: z.union([z.boolean(), z.literal(withPeople)], `must be true, false or "${withPeople}"`).optional(),
    },
    { error: unknownMember },
  )
  .refine(({ events, full }) => full !== withPeople || (events?.includes('application.erased') ?? true), {
    error: 'sends personal data, so its events must include application.erased',
  });

const account = z.strictObject(
  {
    name: shortName,
    url: read.sourceUrl.optional(),
    credential: z.string('must be a text').optional(),
    credentialFile: path.optional(),
    advertiserId: z
      .union(
        [z.int().positive().transform(BigInt), read.advertiserId],
        'must be a positive integer or its digits as text',
      )
      .optional(),
    prefillKey: z.string('must be a text').optional(),
    prefillKeyFile: path.optional(),
    prefillReturnUrls: z.array(read.prefixes, 'must be a list of addresses').min(1, 'must name an address').optional(),
    webhooks: z.array(webhook, 'must be a list').optional(),
  },
  { error: unknownMember },
);

const accountList = z
  .array(account, 'must be a list')
  .min(1, 'must name at least one account')
  .superRefine((accounts, context) => {
    for (const key of ['name', 'advertiserId'] as const) {
      const seen = new Set<unknown>();
      for (const [index, { [key]: mark }] of accounts.entries()) {
        if (mark !== undefined && seen.has(mark))
          context.addIssue({ code: 'custom', path: [index, key], message: 'occurs twice' });
        seen.add(mark);
      }
    }
  });

function loadJson(file: string, report: Report): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    report(`names ${file}, which ${explainUnreadable(error)}`);
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text around the mistake, which may be a credential: only the position is taken from it.
    const place = error instanceof Error ? /line \d+ column \d+/.exec(error.message)?.[0] : undefined;
    report(`names ${file}, which is not valid JSON${place === undefined ? '' : `, see ${place}`}`);
    return undefined;
  }
}

type Form = Pick<z.ZodType<unknown, string>, 'safeParse'>;

/** A secret of the list: the member `name`, or the file that the member `nameFile` names. */
function loadOne<N extends string>(
  list: string,
  at: string,
  given: { readonly [M in N | `${N}File`]?: string | undefined },
  name: N,
  form: Form,
  report: Report,
): Secret | undefined {
  const { [name]: text, [`${name}File` as const]: from } = given;
  if ((text === undefined) === (from === undefined)) return void report(`${at} needs either ${name} or ${name}File`);
  const file = from === undefined ? null : resolve(dirname(list), from);
  const place = file === null ? `${at}.${name}` : `${at}.${name}File ${file}`;
  try {
    const secret = file === null ? new Secret(text ?? '') : loadSecret(file);
    const { error } = form.safeParse(secret.reveal());
    if (error === undefined) return secret;
    report(`${place} ${error.issues[0]?.message}`);
  } catch (error) {
    report(`${place} ${explainUnreadable(error)}`);
  }
  return undefined;
}

function toPlace(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('') || 'the file';
}
