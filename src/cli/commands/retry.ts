// `intake retry`: makes downloads due now, including those that ended without bytes; or continues a webhook that failed or was stopped.
import { formatCount } from '../../domain/format.ts';
import { toId, toKind } from '../arguments.ts';
import { advertiser, type Context, command, type Given, option } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openKnown, requireWebhook } from '../open.ts';

const states = ['waiting', 'missing', 'rejected', 'given_up'] as const;

const options = {
  application: option('<id>', 'only of this application', toId),
  kind: option('<kind>', 'only resume, coverLetter, selectionCriteria or screen', toKind),
  state: option('<state>', `only ${states.join(', ')}`, toState),
  advertiser,
  webhook: option('<name>', 'instead of downloads: this endpoint, which failed or was stopped'),
};

export const retry = command({
  name: 'retry',
  summary: 'make waiting, given up, missing and rejected downloads due now, or continue a webhook',
  examples: [
    ['intake retry', 'all of them'],
    ['intake retry --state given_up', 'those that were given up'],
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
  const { application = null, kind = null, state = null } = given;
  const choice = { applicationId: application, kind, state };
  await using app = await openKnown(context, 'retry', given.advertiser);
  let downloads = 0;
  for (const { advertiserId } of app.accounts) {
    const due = await app.store.downloads.retry(advertiserId, choice);
    if (due === 0) continue;
    downloads += due;
    const { applicationId, ...chosen } = choice;
    const facts = { ...chosen, downloads: due };
    await app.store.privacy.recordAudit({ advertiserId, action: 'retry', applicationId, by: app.by, facts });
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
  const { account } = requireWebhook(app.config, name);
  const advertiserId = app.accounts.find((one) => one.name === account)?.advertiserId ?? null;
  const resumed = advertiserId !== null && (await app.store.webhooks.resume({ advertiserId, name }));
  if (resumed) {
    const facts = { webhook: name };
    await app.store.privacy.recordAudit({ advertiserId, action: 'retry', applicationId: null, by: app.by, facts });
  }
  context.terminal.result({ webhooks: resumed ? 1 : 0 }, () =>
    resumed
      ? `Webhook ${name} is due now. A worker delivers the event after its position.`
      : `Nothing to retry: no worker has delivered to webhook ${name} yet.`,
  );
  return exitCodes.done;
}

function toState(text: string) {
  const state = states.find((known) => known === text);
  if (state) return state;
  throw new Misuse(`The state must be one of ${states.join(', ')}.`);
}
