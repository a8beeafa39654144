// `intake sandbox`: runs the sandbox job board as a process and prints the settings to paste. Not for production.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Sandbox } from '../../dev/sandbox/http/server.ts';
import { command, type Given, preset, toCount } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { toPrintable } from '../terminal.ts';

const sameBytes = 'the same seed gives the same bytes for all boards started on one day (UTC)';
const options = {
  applications: preset('<count>', 'how many applications it starts with', 500, (text) =>
    toCount('--applications', text),
  ),
  seed: preset('<number>', sameBytes, 1, (text) => toCount('--seed', text)),
  host: preset('<host>', 'the address to listen on; beyond this machine only the API is served', '127.0.0.1'),
  port: preset('<port>', '0 takes a free port', 0, (text) => toCount('--port', text, 65_535)),
  live: preset('<per-minute>', 'new applications per minute', 0, (text) => toCount('--live', text)),
};

export const sandbox = command({
  name: 'sandbox',
  summary: 'run a sandbox job board that implements the API, to try Intake without an account',
  examples: [
    ['intake sandbox', '500 applications on a free port; prints the settings to paste'],
    ['intake sandbox --live 30', 'thirty people apply every minute'],
  ],
  options,
  async run({ signal, terminal }, given) {
    const { openSandbox } = await loadDevelopment('sandbox', () => import('../../dev/sandbox/http/server.ts'));
    const { live, ...settings } = given;
    await using board = await openSandbox(settings).catch((error: unknown) => {
      throw toListenFailure(error, given) ?? error;
    });
    board.startArrivals(live);
    const env = toSettings(board);
    terminal.result(env, () => Object.entries(env).map(([name, value]) => `export ${name}=${value}`));
    terminal.note('Paste these lines into another terminal; `npm run intake -- sync` there reads this board.');
    terminal.note(`The sandbox runs until Ctrl-C. What it assumes about the API: ${board.url}/`);
    if (!signal.aborted) await once(signal, 'abort');
    return exitCodes.done;
  },
});

/** Loads a part of src/dev for the command that needs it. The production image has neither that folder nor its packages. */
export async function loadDevelopment<T>(command: 'sandbox' | 'demo', load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const next = 'Run it from a checkout after npm ci; docker build --target sandbox makes an image of the sandbox.';
    throw new Misuse(`intake ${command} is not part of the production image.`, next);
  }
}

/** The failure for an address that is taken or does not exist; null where something else failed. */
function toListenFailure(error: unknown, { host, port }: Given<typeof options>): Misuse | null {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  if (syscall !== 'listen' && syscall !== 'getaddrinfo') return null;
  const happened = `The sandbox cannot listen on port ${port} of ${toPrintable(host.slice(0, 100))} (${code}).`;
  return new Misuse(happened, 'Choose another --port or --host; without them the sandbox takes a free port.');
}

/** The settings to paste: for the advertiser side, and for the candidate side with a careers site on this machine. */
function toSettings({ url, credential, client }: Sandbox): Record<string, string> {
  return {
    SOURCE_URL: url,
    SOURCE_CREDENTIAL: credential,
    SOURCE_RATE: 'off',
    AUTH_URL: url,
    OAUTH_CLIENT_ID: client.clientId,
    OAUTH_CLIENT_SECRET: client.clientSecret,
    OAUTH_REDIRECT_URI: 'http://127.0.0.1:8080/prefill/callback',
    PREFILL_RETURN_URLS: 'http://127.0.0.1:8090/',
    PREFILL_KEY: randomBytes(24).toString('base64url'),
    SESSION_SECRET: randomBytes(24).toString('base64url'),
  };
}
