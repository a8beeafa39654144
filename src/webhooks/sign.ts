// Signs messages as Standard Webhooks 1.0.0 says: HMAC-SHA256 over id, time and body, once for each secret.
import { createHmac } from 'node:crypto';

const prefix = 'whsec_';

/** The header `webhook-signature`. While a secret is rotated there are two, and a receiver that knows either accepts the message. */
export function sign(secrets: readonly string[], id: string, seconds: number, body: string): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(prefix.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`;
    })
    .join(' ');
}
