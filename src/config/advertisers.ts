// Reads several accounts from one file: each has a name, a credential, where it differs from SOURCE_URL an address, and the careers site
// that may prefill its forms and the webhooks that get its events.
// Problems name the file and the position in it, never a value: the file holds credentials.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type Detail, eventTypes } from '../domain/webhook.ts';
import * as read from './parsers.ts';
import { type ConfigDraft, findShortness, isPlain } from './rules.ts';
import { explainUnreadable, loadSecret, Secret } from './secret.ts';
import type { Values } from './settings.ts';

export interface Account {
  readonly name: string;
  /** Null until it is learned from the first answer. */
  readonly advertiserId: bigint | null;
}

/** The accounts of stored rows. Neither their addresses nor their credentials are needed. */
export function loadAccounts({ ADVERTISER_ID }: Values<'source'>, draft: ConfigDraft): Account[] {
  if (draft.accountsFile === '') return [{ name: 'default', advertiserId: ADVERTISER_ID }];
  return loadList(draft).map(({ account }) => account);
}

/** The accounts with their addresses and credentials. Every problem is reported, not only the first. */
export function loadAdvertisers(values: Values<'source'>, draft: ConfigDraft) {
  const { SOURCE_URL: url, SOURCE_CREDENTIAL: credential, ADVERTISER_ID: advertiserId } = values;
  if (draft.accountsFile === '') {
    requireSet({ SOURCE_URL: url, SOURCE_CREDENTIAL: credential }, draft);
    return url && credential ? [{ name: 'default', url, advertiserId, credential }] : [];
  }
  return loadList(draft).flatMap(({ account, at, given }) => {
    const address = toAddress(at, given, url, draft);
    const credential = loadOne(at, given, 'credential', read.credential, draft);
    return credential ? [{ ...account, url: address, credential }] : [];
  });
}

/** The accounts that offer prefill: only its key redeems the handles of an account, and browsers return only to its addresses. */
export function loadSites(
  values: Values<'source'>,
  single: { readonly key: Secret | null; readonly returnUrls: readonly string[] | null },
  draft: ConfigDraft,
) {
  const { SOURCE_URL: url, ADVERTISER_ID: advertiserId } = values;
  if (draft.accountsFile === '') {
    const { key, returnUrls } = single;
    requireSet({ SOURCE_URL: url }, draft);
    return url && key && returnUrls ? [{ name: 'default', url, advertiserId, key, returnUrls }] : [];
  }
  const sites = loadList(draft).flatMap(({ account, at, given }) => {
    const { prefillKey, prefillKeyFile, prefillReturnUrls: returnUrls } = given;
    if ((prefillKey ?? prefillKeyFile ?? returnUrls) === undefined) return [];
    if (returnUrls === undefined) reportList(draft, `${at} needs prefillReturnUrls beside its key for prefills`);
    const key = loadOne(at, given, 'prefillKey', read.bearerToken, draft);
    if (key === undefined || returnUrls === undefined) return [];
    const shortness = findShortness(key, draft);
    if (shortness !== null) reportList(draft, `${at}.prefillKey ${shortness}`);
    return [{ ...account, url: toAddress(at, given, url, draft), key, returnUrls: returnUrls.flat() }];
  });
  if (new Set(sites.map(({ key }) => key.reveal())).size < sites.length)
    reportList(draft, 'two accounts have the same key for prefills');
  return sites;
}

function requireSet(values: Readonly<Record<string, unknown>>, { report }: ConfigDraft): void {
  for (const [name, value] of Object.entries(values)) if (value === null) report(name, 'is required');
}

function toAddress(at: string, { url }: ListedAccount, common: string | null, draft: ConfigDraft): string {
  if (url === undefined && common === null) reportList(draft, `${at}.url is required, since SOURCE_URL is not set`);
  return url ?? common ?? '';
}

/** The endpoints, each with the account whose events it gets. No types: every type. The detail says which row a message holds. */
export function loadWebhooks(values: Values<'webhooks'>, draft: ConfigDraft) {
  const { WEBHOOK_URL: url, WEBHOOK_SECRET: secret, WEBHOOK_ALLOW_PRIVATE: allowPrivate } = values;
  if (draft.accountsFile === '') {
    const single = { account: 'default', name: 'default', types: null, detail: null };
    return { allowPrivate, accounts: ['default'], endpoints: url && secret ? [{ ...single, url, secret }] : [] };
  }
  const list = loadList(draft);
  const endpoints = list.flatMap(({ account: { name: account }, at, given: { webhooks = [] } }) =>
    webhooks.flatMap((given, index) => {
      const { url, events: types = null, full, name = account } = given;
      const secret = loadOne(`${at}.webhooks[${index}]`, given, 'secret', read.webhookSecrets, draft);
      const detail: Detail | null = full ? (full === true ? 'anonymous' : 'personal') : null;
      return secret ? [{ account, name, url, secret, types, detail }] : [];
    }),
  );
  return { allowPrivate, accounts: list.map(({ account }) => account.name), endpoints };
}

function reportList({ accountsFile, report }: ConfigDraft, problem: string): undefined {
  report('ADVERTISERS_FILE', `${accountsFile}: ${problem}`);
}

function loadList(draft: ConfigDraft) {
  const written = loadJson(draft);
  if (written === undefined) return [];
  const { data = [], error } = accountList.safeParse(written);
  for (const issue of error?.issues ?? []) reportList(draft, `${toPlace(issue.path)} ${issue.message}`);
  const addresses = data.flatMap((one) => [one.url, ...(one.webhooks ?? []).map((webhook) => webhook.url)]);
  if (draft.production && addresses.some(isPlain))
    draft.warn('ADVERTISERS_FILE', 'names an http address: all that is sent there can be read on the way');
  return data.map((given, index) => {
    const { name, advertiserId = null } = given;
    return { account: { name, advertiserId }, at: `[${index}]`, given };
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

type ListedAccount = z.output<typeof account>;

const accountList = z
  .array(account, 'must be a list')
  .min(1, 'must name at least one account')
  .superRefine((accounts, context) => {
    const marks = accounts.flatMap(({ name, advertiserId, webhooks = [] }, index) => [
      { path: [index, 'name'], mark: `account ${name}` },
      { path: [index, 'advertiserId'], mark: advertiserId },
      ...webhooks.map((one, place) => ({ path: [index, 'webhooks', place, 'name'], mark: `${one.name ?? name}` })),
    ]);
    const seen = new Set<unknown>();
    for (const { path, mark } of marks.filter(({ mark }) => mark !== undefined)) {
      const message = path.includes('webhooks') ? 'occurs twice: give each a name of its own' : 'occurs twice';
      if (seen.has(mark)) context.addIssue({ code: 'custom', path, message });
      seen.add(mark);
    }
  });

function loadJson({ accountsFile, report }: ConfigDraft): unknown {
  let text: string | undefined;
  try {
    text = readFileSync(accountsFile, 'utf8');
    return JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text around the mistake, which may be a credential: only the position is taken from it.
    const place = error instanceof Error && /line \d+ column \d+/.exec(error.message)?.[0];
    const why = text === undefined ? explainUnreadable(error) : `is not valid JSON${place ? `, see ${place}` : ''}`;
    return report('ADVERTISERS_FILE', `names ${accountsFile}, which ${why}`);
  }
}

/** A secret of the list: the member `name`, or the file that the member `nameFile` names, relative to the list. */
function loadOne<N extends string>(
  at: string,
  given: { readonly [M in N | `${N}File`]?: string | undefined },
  name: N,
  form: z.ZodType<unknown, string>,
  draft: ConfigDraft,
): Secret | undefined {
  const { [name]: text, [`${name}File` as const]: from } = given;
  if ((text === undefined) === (from === undefined))
    return reportList(draft, `${at} needs either ${name} or ${name}File`);
  const file = from === undefined ? null : resolve(dirname(draft.accountsFile), from);
  const place = file === null ? `${at}.${name}` : `${at}.${name}File ${file}`;
  try {
    const secret = file === null ? new Secret(text ?? '') : loadSecret(file);
    const { error } = form.safeParse(secret.reveal());
    return error ? reportList(draft, `${place} ${error.issues[0]?.message}`) : secret;
  } catch (error) {
    return reportList(draft, `${place} ${explainUnreadable(error)}`);
  }
}

function toPlace(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('') || 'the file';
}
