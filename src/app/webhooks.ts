// Opens the clients of the configured webhooks.
import { type Config, toWebhookSecrets } from '../config.ts';
import { version } from '../domain/version.ts';
import type { Webhook } from '../sync/accounts/webhooks.ts';
import { openWebhookClient, type WebhookClient } from '../webhooks/send.ts';

/** A client per endpoint, so that none waits for another. Nothing is sent yet. */
export function openWebhooks({ webhooks }: Config<'webhooks'>, stack: AsyncDisposableStack) {
  return webhooks.endpoints.map(({ account, name, url, secret, types, detail }) => {
    const { send, look } = stack.use(
      openWebhookClient({
        url,
        secrets: () => toWebhookSecrets(secret),
        allowPrivate: webhooks.allowPrivate,
        userAgent: `intake/${version}`,
      }),
    );
    return { account, name, types, detail, send, look } satisfies Webhook & Pick<WebhookClient, 'look'>;
  });
}
