// Intake as a careers site sees it: a sandbox with candidates, one or more processes with the public routes, and browsers that keep
// cookies, follow no redirect on their own and record every address they were redirected to.

import { Writable } from 'node:stream';
import { openStoreOf } from '../../../src/app/database.ts';
import { createMaintenance } from '../../../src/app/maintenance.ts';
import { openPrefillServer } from '../../../src/app/prefill.ts';
import { openBlobsOf } from '../../../src/app/storage.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Choices } from '../../../src/dev/sandbox/behaviour/choices.ts';
import type { OAuthClient } from '../../../src/dev/sandbox/http/oauth.ts';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { createLog } from '../../../src/log.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import type { TestDatabase } from '../database/test-database.ts';
import { toEnvironment } from '../processes/syncing.ts';
import { findFreePort } from '../servers/free-port.ts';
import { openSharedStore } from '../small-intake.ts';
import { openScratch } from '../stores/blob-stores.ts';

export const careers = 'https://careers.example.com/apply';
export const prefillKey = 'a-key-of-the-careers-site';
export const sessionSecret = 'a-session-secret-for-tests';

/** The settings of the public port, whose only careers site is `careers`. */
export function toPrefillSettings({ url, client }: Sandbox, redirectUri: string): Record<string, string> {
  return {
    ...{ AUTH_URL: url, OAUTH_CLIENT_ID: client.clientId, OAUTH_CLIENT_SECRET: client.clientSecret },
    ...{ OAUTH_REDIRECT_URI: redirectUri, PREFILL_RETURN_URLS: careers },
    ...{ PREFILL_KEY: prefillKey, SESSION_SECRET: sessionSecret },
  };
}

/** Where the button of the careers site leads, with as little as it must say. */
export function toStartUrl(url: string, { advertiserId }: Sandbox): string {
  const asked = { advertiser_id: String(advertiserId), form_url: careers, return_url: careers };
  return `${url}/prefill/start?${new URLSearchParams(asked)}`;
}

/** The careers site asks for the profile. */
export function redeem(url: string, handle: string | null, key = prefillKey): Promise<Response> {
  return fetch(`${url}/prefill/redeem`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ handle }),
  });
}

export interface PrefillStage extends AsyncDisposable {
  readonly sandbox: Sandbox;
  /** The URL of each process; the first one has the registered redirect URI. */
  readonly urls: readonly string[];
  /** Runs the maintenance task for prefills of a worker on which prefill is not configured, and its sweep of begun deletes. */
  lapse(): Promise<void>;
  readonly blobsPath: string;
  readonly privacyKey: string;
  /** All log output so far. */
  logged(): string;
  /** Moves the clocks of the sandbox and the routes ahead. */
  wait(ms: number): void;
  toStartUrl(changed?: Record<string, string | null>): string;
  redeem(handle: string | null, key?: string): Promise<Response>;
}

export interface StageOptions {
  readonly choices?: Partial<Choices>;
  readonly client?: Partial<OAuthClient>;
  readonly env?: Record<string, string>;
  readonly processes?: number;
}

/** Makes the database the owner of its blob store, as the first start of a worker does. */
export async function takeBlobStore(env: Record<string, string>): Promise<void> {
  const config = loadConfig(env, { needs: ['database', 'source', 'blobs', 'privacy'] });
  const signal = AbortSignal.timeout(600_000);
  await using store = await openStoreOf(config, 'test');
  await using _blobs = await openBlobsOf(config, store, signal);
}

/** Opens a stage on a database. The stages of one file share the store of their first process. */
export async function openPrefillStage(database: TestDatabase, options: StageOptions = {}): Promise<PrefillStage> {
  const stack = new AsyncDisposableStack();
  let offsetMs = 0;
  const now = () => Date.now() + offsetMs;
  const ports = await Promise.all(Array.from({ length: options.processes ?? 1 }, findFreePort));
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const redirectUri = `${urls[0]}/prefill/callback`;
  const sandbox = stack.use(
    await openSandbox({
      applications: 0,
      now,
      choices: { consent: 'allow', ...options.choices },
      client: { redirectUris: [redirectUri], ...options.client },
    }),
  );
  const blobs = stack.use(await openScratch());
  // The stages of one test file share its database, but each has its own blob store, unless it is given one.
  if (options.env?.BLOBS_URL === undefined) await database.query('DELETE FROM intake.blob_store');
  const lines: string[] = [];
  const log = await createLog(
    { level: 'trace', format: 'json' },
    new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk));
        done();
      },
    }),
  );
  let lapse = async () => {};
  for (const [nth, port] of ports.entries()) {
    const env = {
      ...toEnvironment(database, sandbox),
      ADVERTISER_ID: String(sandbox.advertiserId),
      BLOBS_URL: `file:${blobs.path}`,
      PORT: String(port),
      ...toPrefillSettings(sandbox, redirectUri),
      ...options.env,
    };
    const config = loadConfig(env, { needs: ['database', 'blobs', 'prefill', 'privacy'] });
    const signal = AbortSignal.timeout(600_000);
    const store = nth === 0 ? openSharedStore(database) : stack.use(await openStoreOf(config, 'prefill'));
    // A worker has learned the account and taken the blob store.
    await store.advertisers.ensure('default', sandbox.advertiserId);
    await using _taken = await openBlobsOf(config, store, signal);
    stack.use(await openPrefillServer(config, store, log, signal, now));
    const needs = ['source', 'sync', 'blobs', 'privacy'] as const;
    const other = loadConfig(toEnvironment(database, sandbox, blobs.path), { needs });
    const task = createMaintenance(other, store, log).find(({ name }) => name === 'prefills');
    lapse = async () => {
      await task?.run(signal, () => {});
      await database.query(`UPDATE intake.blobs SET delete_until = now() WHERE delete_until IS NOT NULL`);
      await using opened = await openBlobsOf(other, store, signal);
      await deleteDue({ store, blobs: opened }, signal);
    };
  }
  return {
    sandbox,
    urls,
    lapse: () => lapse(),
    blobsPath: blobs.path,
    privacyKey: String(toEnvironment(database, sandbox).PRIVACY_KEY),
    logged: () => lines.join(''),
    wait: (ms) => {
      offsetMs += ms;
    },
    toStartUrl: (changed = {}) => {
      const parameters = {
        advertiser_id: String(sandbox.advertiserId),
        form_url: careers,
        return_url: `${careers}?job=7`,
        position_title: 'Nurse, night shift',
        position_uri: 'https://careers.example.com/jobs/7',
        country_code: 'AU',
        postal_code: '3000',
        ...changed,
      };
      const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== null);
      return `${urls[0]}/prefill/start?${new URLSearchParams(given)}`;
    },
    redeem: (handle, key) => redeem(urls.at(-1) ?? '', handle, key),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
