// Reads several accounts from one file: each has a name, a credential and, where it differs from SOURCE_URL, an address.
// Problems name the file and the position in it, never a value: the file holds credentials.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import * as read from './parsers.ts';
import { explainUnreadable, loadSecret, Secret } from './secret.ts';

/** One configured account. */
export interface Advertiser {
  readonly name: string;
  readonly url: string;
  readonly credential: Secret;
  /** Null until it is learned from the first answer. */
  readonly advertiserId: bigint | null;
}

/** Reads the accounts of a file. Every problem goes to `report`, not only the first. */
export function loadAdvertisers(file: string, url: string | null, report: (text: string) => void): Advertiser[] {
  const written = loadJson(file, report);
  if (written === undefined) return [];
  const accounts = accountList.safeParse(written);
  if (!accounts.success) {
    for (const issue of accounts.error.issues) report(`${file}: ${toPlace(issue.path)} ${issue.message}`);
    return [];
  }
  return accounts.data.flatMap((account, index) => {
    const at = `${file}: [${index}]`;
    if (account.url === undefined && url === null) report(`${at}.url is required, since SOURCE_URL is not set`);
    const credential =
      account.credential === undefined
        ? loadCredential(resolve(dirname(file), account.credentialFile ?? ''), (text) => report(`${at} ${text}`))
        : new Secret(account.credential);
    return credential === undefined
      ? []
      : [{ name: account.name, url: account.url ?? url ?? '', credential, advertiserId: account.advertiserId ?? null }];
  });
}

const account = z
  .strictObject(
    {
      name: z
        .string('is required')
        .regex(/^[A-Za-z0-9][\w.-]{0,99}$/, 'must be letters, digits, dot, dash or underscore'),
      url: read.sourceUrl.optional(),
      credential: read.credential.optional(),
      credentialFile: z.string('must be a path').min(1, 'must be a path').optional(),
      advertiserId: z
        .union(
          [z.int().positive().transform(BigInt), read.advertiserId],
          'must be a positive integer or its digits as text',
        )
        .optional(),
    },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys' ? `has an unknown member ${issue.keys.join(', ')}` : 'must be an object',
    },
  )
  .refine(({ credential, credentialFile }) => (credential === undefined) !== (credentialFile === undefined), {
    error: 'needs either credential or credentialFile',
  });

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

function loadJson(file: string, report: (text: string) => void): unknown {
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

function loadCredential(file: string, report: (text: string) => void): Secret | undefined {
  try {
    const secret = loadSecret(file);
    const checked = read.credential.safeParse(secret.reveal());
    if (checked.success) return secret;
    report(`credentialFile ${file} ${checked.error.issues[0]?.message}`);
  } catch (error) {
    report(`credentialFile ${file} ${explainUnreadable(error)}`);
  }
  return undefined;
}

function toPlace(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('') || 'the file';
}
