// The integrator's side of the demo: the example receiver of webhooks. It verifies the worker's messages and shows them on a page.
import { randomBytes } from 'node:crypto';
import type { DemoPorts } from './ports.ts';
import { openProcess } from './process.ts';

/** The webhook settings of a demo, and the address of the receiver's page. The secret is generated for this demo only. */
export function createDemoReceiver({ receiver }: DemoPorts) {
  const url = `http://127.0.0.1:${receiver}`;
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  return {
    url,
    env: { WEBHOOK_URL: `${url}/webhooks`, WEBHOOK_SECRET: secret, WEBHOOK_ALLOW_PRIVATE: 'true' },
    /** Starts it; disposing stops it. */
    open: () => openProcess(['examples/receive-webhooks.ts'], { PORT: String(receiver), WEBHOOK_SECRET: secret }),
  };
}
