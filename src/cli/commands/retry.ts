// `intake retry`: makes downloads due now, including those that ended without bytes; or continues a webhook that failed or was stopped.
// `intake webhook`: shows the endpoints that workers deliver events to, and sends one of them a ping.

import { formatCount } from '../../domain/format.ts';
import { describeAnswer, isDelivered, toPing, type WebhookStatus } from '../../domain/webhook.ts';
import { advertiser, type Context, command, type Given, option, toId, toKind, toWord } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig, openKnown, requireNamed } from '../open.ts';

const states = ['waiting', 'missing', 'rejected', 'given_up'] as const;

const options = {
  application: option('<id>', 'only of this application', toId),
  kind: option('<kind>', 'only resume, coverLetter, selectionCriteria or screen', toKind),
  state: option('<state>', `only ${states.join(', ')}`, toWord(states)),
  advertiser,
  webhook: option('<name>', 'instead of downloads: this endpoint, which failed or was stopped'),
};

export const retry = command({
  name: 'retry',
  summary: 'make waiting, given up, missing and rejected downloads due now, or continue a webhook',
  examples: [
    ['intake retry', 'all of them'],
    ['intake retry --application 120045 --kind resume', 'one file'],
    ['intake retry --webhook ats', 'no file: deliver the next event to this endpoint now'],
  ],
  options,
  async run(context, { webhook, ...files }) {
    if (webhook === undefined) return await retryFiles(context, files);
    if (Object.keys(files).some((name) => name !== 'json')) throw new Misuse('--webhook stands alone.');
    return await retryWebhook(context, webhook);
  },
});

async function retryFiles(context: Context, given: Omit<Given<typeof options>, 'webhook'>) {
  const { application: applicationId = null, kind = null, state = null } = given;
  await using app = await openKnown(context, 'retry', given.advertiser);
  let downloads = 0;
  for (const advertiserId of app.advertisers) {
    const due = await app.store.downloads.retryDownloads(advertiserId, { applicationId, kind, state });
    downloads += due;
    const facts = { kind, state, downloads: due };
    if (due > 0) await app.audit({ advertiserId, action: 'retry', applicationId, facts });
  }
  context.terminal.result({ downloads }, () =>
    downloads === 0
      ? 'Nothing to retry: no matching download is waiting or has failed.'
      : `${formatCount(downloads, 'download is', 'downloads are')} due now. A worker fetches them, or: intake sync`,
  );
  return exitCodes.done;
}

async function retryWebhook(context: Context, name: string) {
  await using app = await openKnown(context, 'retry', undefined, 'webhooks');
  const { account } = requireNamed('webhook', app.config.webhooks.endpoints, name);
  const advertiserId = app.accounts.find((one) => one.name === account)?.advertiserId ?? null;
  const resumed = advertiserId !== null && (await app.store.webhooks.resumeWebhook({ advertiserId, name }));
  if (resumed) await app.audit({ advertiserId, action: 'retry', applicationId: null, facts: { webhook: name } });
  context.terminal.result({ webhooks: resumed ? 1 : 0 }, () =>
    resumed
      ? `Webhook ${name} is due now. A worker delivers the event after its position.`
      : `Nothing to retry: no worker has delivered to webhook ${name} yet.`,
  );
  return exitCodes.done;
}

export const webhook = command({
  name: 'webhook',
  summary: 'list the endpoints that get events, or send one of them a ping',
  examples: [
    ['intake webhook list', 'position, events waiting, lag and last answer of each endpoint'],
    ['intake webhook test ats', 'a signed ping; exits with 3 if the endpoint does not take it'],
  ],
  args: { '<action>': 'list or test', '[name]': 'for test: the endpoint' },
  async run(context, _options, action = '', name?: string) {
    if (action === 'list' && name === undefined) return await list(context);
    if (action === 'test' && name !== undefined) return await ping(context, name);
    throw new Misuse('The action must be list, or test and the name of an endpoint.');
  },
});

async function list({ env, terminal }: Context) {
  const config = await loadCommandConfig(env, ['database', 'privacy', 'webhooks']);
  const { openStoreOf } = await import('../../app/database.ts');
  const { renderWebhooks } = await import('../render-status.ts');
  await using store = await openStoreOf(config, 'webhook');
  const known = await store.webhooks.loadWebhooks();
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
  const config = await loadCommandConfig(env, ['webhooks']);
  const endpoint = requireNamed('webhook', config.webhooks.endpoints, name);
  const { openWebhook } = await import('../../app/clients.ts');
  await using client = openWebhook(endpoint, config);
  const answer = await client.send(toPing(name, new Date()));
  const [delivered, words] = [isDelivered(answer), describeAnswer(answer)];
  const result = { webhook: name, delivered, status: answer.status, answer: words };
  terminal.result(result, () =>
    delivered
      ? `Webhook ${name} took the ping: ${words}.`
      : `Webhook ${name} did not take the ping: ${words}. No event was sent.`,
  );
  return delivered ? exitCodes.done : exitCodes.incomplete;
}
