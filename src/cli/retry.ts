// `intake retry`: makes downloads due now, including those that ended without bytes.
import { formatCount } from '../domain/format.ts';
import { toId, toKind } from './arguments.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { Misuse } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';

interface RetryFlags {
  readonly application?: string;
  readonly kind?: string;
  readonly state?: string;
  readonly advertiser?: string;
}

const states = ['waiting', 'missing', 'rejected', 'given_up'] as const;

export const retry = command<RetryFlags>({
  name: 'retry',
  summary: 'make waiting, given up, missing and rejected downloads due now',
  examples: [
    ['intake retry', 'all of them'],
    ['intake retry --state given_up', 'those that were given up'],
    ['intake retry --application 120045 --kind resume', 'one file'],
  ],
  shape: (shaped) =>
    shaped
      .option('--application <id>', 'only of this application')
      .option('--kind <kind>', 'only resume, coverLetter, selectionCriteria or screen')
      .option('--state <state>', `only ${states.join(', ')}`)
      .option('--advertiser <name>', 'only this account, where several are configured'),
  async run({ env, signal, terminal }, { application, kind, state, advertiser }) {
    const choice = {
      applicationId: application === undefined ? null : toId(application),
      kind: kind === undefined ? null : toKind(kind),
      state: state === undefined ? null : toState(state),
    };
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy'], advertiser });
    const { toActor } = await import('../app/actor.ts');
    const { openKnown } = await import('../app/resources.ts');
    await using app = await openKnown(config, 'retry', { advertiser, signal });
    let downloads = 0;
    for (const { advertiserId } of app.accounts) {
      const due = await app.store.downloads.retry(advertiserId, choice);
      if (due === 0) continue;
      downloads += due;
      const { applicationId, ...chosen } = choice;
      const facts = { ...chosen, downloads: due };
      await app.store.privacy.recordAudit({ advertiserId, action: 'retry', applicationId, by: toActor(), facts });
    }
    terminal.result({ downloads }, () =>
      downloads === 0
        ? 'Nothing to retry: no matching download is waiting or has failed.'
        : `${formatCount(downloads, 'download is', 'downloads are')} due now. A worker fetches them, or: intake sync`,
    );
    return exitCodes.done;
  },
});

function toState(text: string) {
  const state = states.find((known) => known === text);
  if (state) return state;
  throw new Misuse(`The state must be one of ${states.join(', ')}.`);
}
