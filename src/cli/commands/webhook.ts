// `intake webhook`: shows the endpoints that workers deliver events to, and sends one of them a ping.
import type { Config } from '../../config.ts';
import type { WebhookStatus } from '../../domain/webhook.ts';
import { describeAnswer, isDelivered, toPing } from '../../domain/webhook.ts';
import { type Context, command } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig, requireWebhook } from '../open.ts';

export const webhook = command({
  name: 'webhook',
  summary: 'list the endpoints that get events, or send one of them a ping',
  examples: [
    ['intake webhook list', 'position, events waiting, lag and last answer of each endpoint'],
    ['intake webhook test ats', 'a signed ping; exits with 3 if the endpoint does not take it'],
  ],
  args: [
    ['<action>', 'list or test'],
    ['[name]', 'for test: the endpoint'],
  ],
  async run(context, _options, action = '', name?: string) {
    if (action === 'list' && name === undefined) return await list(context);
    if (action === 'test' && name !== undefined) return await ping(context, name);
    throw new Misuse('The action must be list, or test and the name of an endpoint.');
  },
});

async function list({ env, terminal }: Context) {
  const config = await loadCommandConfig(env, { needs: ['database', 'privacy', 'webhooks'] });
  const { openStoreOf } = await import('../../app/database.ts');
  const { renderWebhooks } = await import('../render-status.ts');
  await using store = await openStoreOf(config, 'webhook');
  const known = await store.webhooks.load();
  const webhooks = config.webhooks.endpoints.map(
    ({ account, name }) => known.find((one) => one.advertiser === account && one.name === name) ?? toNew(account, name),
  );
  terminal.result({ webhooks }, () =>
    webhooks.length === 0 ? 'No webhook is configured.' : renderWebhooks(webhooks, new Date()),
  );
  return exitCodes.done;
}

/** An endpoint that no worker knows yet: none has started with it, or the account has read nothing so far. */
function toNew(advertiser: string, name: string): WebhookStatus {
  const none = { behindSince: null, failingSince: null, nextAt: null, stop: null, lastAnswer: null, answeredAt: null };
  return { advertiser, name, position: null, behind: 0, failures: 0, ...none };
}

async function ping({ env, terminal }: Context, name: string) {
  const config: Config<'webhooks'> = await loadCommandConfig(env, { needs: ['webhooks'] });
  const endpoint = requireWebhook(config, name);
  const { openWebhook } = await import('../../app/clients.ts');
  await using client = openWebhook(endpoint, config);
  const answer = await client.send(toPing(name, new Date()));
  const delivered = isDelivered(answer);
  const words = describeAnswer(answer);
  terminal.result({ webhook: name, delivered, status: answer.status, answer: words }, () =>
    delivered
      ? `Webhook ${name} took the ping: ${words}.`
      : `Webhook ${name} did not take the ping: ${words}. No event was sent.`,
  );
  return delivered ? exitCodes.done : exitCodes.incomplete;
}
