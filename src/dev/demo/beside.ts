// What runs beside the demo's worker, each a process of its own as in production: the prefill routes against the sandbox, the example careers
// site, and the example receiver of webhooks. The secrets are generated for this demo only.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Sandbox } from '../sandbox/http/server.ts';
import type { DemoPorts } from './ports.ts';

/** The settings of prefill and webhooks, the addresses of the two examples, and what starts all three. */
export function createBeside(board: Sandbox, { prefill: port, careersSite, receiver }: DemoPorts) {
  const siteUrl = `http://localhost:${careersSite}`;
  const receiverUrl = `http://127.0.0.1:${receiver}`;
  const secret = () => randomBytes(32).toString('base64');
  const env = {
    PORT: String(port),
    AUTH_URL: board.url,
    OAUTH_CLIENT_ID: board.client.clientId,
    OAUTH_CLIENT_SECRET: board.client.clientSecret,
    OAUTH_REDIRECT_URI: `http://127.0.0.1:${port}/prefill/callback`,
    PREFILL_RETURN_URLS: `${siteUrl}/apply`,
    PREFILL_KEY: secret(),
    SESSION_SECRET: secret(),
    WEBHOOK_URL: `${receiverUrl}/webhooks`,
    WEBHOOK_SECRET: `whsec_${secret()}`,
    WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  return {
    env,
    siteUrl,
    receiverUrl,
    open({ PATH, HOME, TMPDIR }: NodeJS.ProcessEnv): AsyncDisposable {
      const { PREFILL_KEY, WEBHOOK_SECRET } = env;
      const stack = new AsyncDisposableStack();
      // As every command beside a demo it finds the settings and the database by itself: a SOURCE_URL would name another account.
      stack.use(openProcess(['src/cli/main.ts', 'prefill'], { PATH, HOME, TMPDIR, LOG_LEVEL: 'warn' }));
      stack.use(
        openProcess(['examples/careers-site/main.ts'], {
          PORT: String(careersSite),
          SITE_URL: siteUrl,
          INTAKE_URL: `http://127.0.0.1:${port}`,
          PREFILL_KEY,
          ADVERTISER_ID: String(board.advertiserId),
          EMPLOYER: board.employer,
        }),
      );
      stack.use(openProcess(['examples/receive-webhooks.ts'], { PORT: String(receiver), WEBHOOK_SECRET }));
      return stack;
    },
  };
}

const root = join(import.meta.dirname, '../../..');

/** Starts a script of the checkout; disposing stops it. */
function openProcess([file = '', ...args]: string[], env: NodeJS.ProcessEnv): AsyncDisposable {
  // The IPC channel closes when this process ends for any reason, and the child then exits. A Ctrl-C reaches this process alone.
  const child = spawn(process.execPath, [join(root, file), ...args], {
    env,
    // Not the folder of the user, which may have a .env.
    cwd: import.meta.dirname,
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}
