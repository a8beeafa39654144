// The candidate side of the demo: the prefill routes against the sandbox, and the example careers site, each a process of its own as in
// production. The secrets are generated for this demo only.
import { randomBytes } from 'node:crypto';
import type { Sandbox } from '../sandbox/http/server.ts';
import type { DemoPorts } from './ports.ts';
import { openProcess } from './process.ts';

/** The prefill settings of a demo, and the address of its careers site. */
export interface DemoPrefill {
  readonly env: Readonly<Record<string, string>>;
  readonly siteUrl: string;
}

/** Creates the settings. */
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

/** Starts the prefill routes with the demo's settings; disposing stops them. */
export function openDemoRoutes(env: NodeJS.ProcessEnv): AsyncDisposable {
  return openProcess(['src/cli/main.ts', 'prefill'], { ...env, LOG_LEVEL: 'warn' }, 'inherit');
}

/** Starts the example careers site; disposing stops it. */
export function openDemoSite(board: Sandbox, { env, siteUrl }: DemoPrefill): AsyncDisposable {
  return openProcess(['examples/careers-site/main.ts'], {
    PORT: new URL(siteUrl).port,
    SITE_URL: siteUrl,
    INTAKE_URL: `http://127.0.0.1:${env.PORT}`,
    PREFILL_KEY: env.PREFILL_KEY,
    ADVERTISER_ID: String(board.advertiserId),
    EMPLOYER: board.employer,
  });
}
