// The candidate side of the demo: the public routes against the sandbox, and the example careers site beside them as a process
// of its own, as a real one would be. What it needs is made up on the spot and holds for this demo only.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Sandbox } from '../sandbox/http/server.ts';
import type { DemoPorts } from './ports.ts';

/** Settings of prefill for a demo, and where its careers site will be. */
export interface DemoPrefill {
  readonly env: Readonly<Record<string, string>>;
  readonly siteUrl: string;
}

/** Draws up the settings. */
export function createDemoPrefill(board: Sandbox, { prefill: port, careersSite }: DemoPorts): DemoPrefill {
  const siteUrl = `http://localhost:${careersSite}`;
  const secret = () => randomBytes(24).toString('base64url');
  return {
    siteUrl,
    env: {
      PORT: String(port),
      AUTH_URL: board.url,
      OAUTH_CLIENT_ID: board.client.clientId,
      OAUTH_CLIENT_SECRET: board.client.clientSecret,
      OAUTH_REDIRECT_URI: `http://127.0.0.1:${port}/prefill/callback`,
      PREFILL_RETURN_URLS: `${siteUrl}/apply`,
      PREFILL_KEY: secret(),
      SESSION_SECRET: secret(),
    },
  };
}

/** Starts the example careers site; it ends with its scope. */
export function openDemoSite(board: Sandbox, { env, siteUrl }: DemoPrefill): AsyncDisposable {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../../examples/careers-site/main.ts')],
    {
      env: {
        PORT: new URL(siteUrl).port,
        SITE_URL: siteUrl,
        INTAKE_URL: `http://127.0.0.1:${env.PORT}`,
        PREFILL_KEY: env.PREFILL_KEY,
        ADVERTISER_ID: String(board.advertiserId),
        EMPLOYER: board.employer,
      },
      // The channel ends with us, and the site with it, however we end.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    },
  );
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}
