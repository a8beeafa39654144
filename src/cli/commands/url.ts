// `intake url`: prints an address at which a stored file can be opened; a presigned one expires after five minutes.
import { advertiser, command, toId, toKind } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openFiles } from '../open.ts';

export const url = command({
  name: 'url',
  summary: 'print the address of a stored file: a URL signed for five minutes, or a path on disk',
  examples: [['intake url 120045 resume', 'the resume of an application']],
  args: [
    ['<application>', 'its id'],
    ['<kind>', 'resume, coverLetter, selectionCriteria or screen'],
  ],
  options: { advertiser },
  async run(context, { advertiser: name }, application = '', kindText = '') {
    const [applicationId, kind] = [toId(application), toKind(kindText)];
    await using app = await openFiles(context, 'url', name, 'read');
    const { advertisers, blobs, store } = app;
    const [file, ...others] = await store.files.findStoredFile(advertisers, applicationId, kind);
    const what = `${kind} of application ${applicationId}`;
    if (!file) throw new Misuse(`No ${what} is stored.`, 'intake status shows what is stored and what is waiting.');
    if (others.length > 0) throw new Misuse(`Several accounts have the ${what}.`, 'Name one with --advertiser.');
    const { advertiserId, key, fileName, contentType } = file;
    await store.privacy.recordAudit({ advertiserId, action: 'url', applicationId, by: app.by, facts: { kind } });
    const url = await blobs.url(key, {
      fileName: fileName ?? `${kind}-${applicationId}`,
      contentType: contentType ?? 'application/octet-stream',
      expiresInMs: 5 * 60_000,
    });
    context.terminal.result({ advertiserId, url }, () => url);
    return exitCodes.done;
  },
});
