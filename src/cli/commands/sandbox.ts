// `intake sandbox`: runs the sandbox job board as a process and prints the settings to paste. Not for production.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { command, preset, toCount } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { toPrintable } from '../terminal.ts';

const sameBytes = 'the same seed gives the same bytes for all boards started on one day (UTC)';

export const sandbox = command({
  name: 'sandbox',
  summary: 'run a sandbox job board that implements the API, to try Intake without an account',
  examples: [
    ['intake sandbox', '500 applications on a free port; prints the settings to paste'],
    ['intake sandbox --live 30', 'thirty people apply every minute'],
  ],
  options: {
    applications: preset('<count>', 'how many applications it starts with', 500, toCount()),
    seed: preset('<number>', sameBytes, 1, toCount()),
    host: preset('<host>', 'the address to listen on; beyond this machine only the API is served', '127.0.0.1'),
    port: preset('<port>', '0 takes a free port', 0, toCount(65_535)),
    live: preset('<per-minute>', 'new applications per minute', 0, toCount()),
  },
  async run({ signal, terminal }, { live, ...settings }) {
    const { openSandbox } = await loadDevelopment('sandbox', () => import('../../dev/sandbox/http/server.ts'));
    await using board = await openSandbox(settings).catch((error: NodeJS.ErrnoException) => {
      if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') throw error;
      const place = `port ${settings.port} of ${toPrintable(settings.host.slice(0, 100))}`;
      const next = 'Choose another --port or --host; without them the sandbox takes a free port.';
      throw new Misuse(`The sandbox cannot listen on ${place} (${error.code}).`, next);
    });
    board.startArrivals(live);
    const { url, credential, client } = board;
    // For the advertiser side, and for the candidate side with a careers site on this machine.
    const env = {
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
    terminal.result(env, () => Object.entries(env).map(([name, value]) => `export ${name}=${value}`));
    terminal.note('Paste these lines into another terminal; `npm run intake -- sync` there reads this board.');
    terminal.note(`The sandbox runs until Ctrl-C. What it assumes about the API: ${url}/`);
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
