// `intake url`: an address under which one stored file can be opened, for minutes where the store signs it.
import { requireAdvertiser, toId, toKind } from './arguments.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { Failure } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';

const expiresInMs = 5 * 60_000;

export const url = command<{ readonly advertiser?: string }>({
  name: 'url',
  summary: 'print an address of a stored file: signed for five minutes, or a path on disk',
  examples: [['intake url 120045 resume', 'the resume of an application']],
  shape: (shaped) =>
    shaped
      .argument('<application>', 'its id')
      .argument('<kind>', 'resume, coverLetter, selectionCriteria or screen')
      .option('--advertiser <name>', 'of this one of several configured accounts'),
  async run({ env, signal, terminal }, { advertiser }, application = '', kindText = '') {
    const request = { applicationId: toId(application), kind: toKind(kindText), expiresInMs, advertiser, signal };
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy', 'blobs'] });
    requireAdvertiser(config.source.advertisers, advertiser);
    const { loadFileUrls } = await import('../app/files.ts');
    const found = await loadFileUrls(config, request);
    const [only] = found;
    if (found.length > 1 || !only) {
      const { kind, applicationId } = request;
      const happened = only
        ? 'Several accounts have such a file.'
        : `No ${kind} of application ${applicationId} is stored.`;
      throw new Failure(exitCodes.usage, happened, {
        kept: 'Everything, untouched.',
        next: only ? 'Name one with --advertiser.' : 'intake status shows what is stored and what waits.',
      });
    }
    terminal.result(only, () => only.url);
    return exitCodes.done;
  },
});
