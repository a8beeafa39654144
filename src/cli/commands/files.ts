// Stored files: `intake verify` checks that every one is where its row says, with the same bytes, and queues damaged ones again; `intake url`
// prints an address at which one can be opened.
import { formatBytes, formatCount } from '../../domain/format.ts';
import type { VerifySummary } from '../../sync/files/verify.ts';
import { advertiser, command, flag, preset, toId, toKind } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openFiles } from '../open.ts';

export const verify = command({
  name: 'verify',
  summary: 'compare rows with stored objects and their bytes; queue damaged files again',
  examples: [
    ['intake verify', 'every row and object, and the 1 % of the bytes that was read longest ago'],
    ['intake verify --full', 'the bytes of every file, and the counts of the status'],
  ],
  options: {
    sample: preset('<percent>', 'percentage of the bytes to read, those read longest ago', 0.01, toShare),
    full: flag('read the bytes of every file, and count all rows again'),
    collect: flag('delete unreferenced objects that are older than a day, even if they are more than 2 %'),
    advertiser,
  },
  after: 'Exits with 3 while a file is missing or damaged, and when an object without a row is found.',
  async run(context, { sample, full, collect, advertiser: name }) {
    const { signal, terminal } = context;
    const share = full ? 1 : sample;
    const { verify: compare } = await import('../../sync/files/verify.ts');
    await using app = await openFiles(context, 'verify', name, 'own');
    const { advertisers, config, store, blobs, crashPoint } = app;
    const miscounted = share === 1 ? await store.reports.repairTallies() : 0;
    if (share === 1) await store.reports.markAllDays();
    const progress = terminal.openProgress('blobs');
    const onStep = (sum: VerifySummary) => progress.update(sum.blobs, null, formatBytes(sum.readBytes));
    const parallel = config.blobs.SOURCE_CONCURRENCY;
    const request = { advertisers, amount: { share }, mayDeleteManyOrphans: collect, parallel, signal };
    const end = () => progress[Symbol.dispose]();
    const summary = await compare({ store, blobs, crashPoint, onStep }, request).finally(end);
    const found = { ...summary, miscounted };
    const isDamaged = found.missing + found.damaged > 0;
    const { unrepaired, extra, lost } = found;
    const requeued = `${formatCount(found.requeued, 'file is', 'files are')} queued again`;
    const gone = `, ${formatCount(lost, 'earlier version or resume is', 'earlier versions or resumes are')} lost`;
    terminal.result(found, () => [
      `${formatCount(found.blobs, 'blob')} compared, the bytes of ${found.read} read (${formatBytes(found.readBytes)}).`,
      isDamaged
        ? `${found.missing} missing, ${found.damaged} damaged: ${requeued}${lost > 0 ? gone : ''}. Next: intake sync`
        : `${unrepaired > 0 ? 'No other' : 'None'} is missing or damaged.`,
      unrepaired > 0 &&
        `${formatCount(unrepaired, 'file')} found missing or damaged earlier: not downloaded again yet. Next: intake sync. Where the source did not have the file, run intake retry first.`,
      extra > 0 &&
        `${formatCount(extra, 'object has', 'objects have')} no row. They are deleted after a day unless a row refers to them by then.`,
      miscounted > 0 && `${formatCount(miscounted, 'count of the status was', 'counts of the status were')} corrected.`,
      found.foreign > 0 && `Left alone: ${formatCount(found.foreign, 'object')} whose names are not Intake's.`,
      found.collected > 0 && `Deleted: ${formatCount(found.collected, 'unreferenced object')}.`,
      found.braked &&
        `${found.orphans} objects are unreferenced. That is too many at once, so none was deleted: a database restored from an older backup looks like this. To delete them anyway: intake verify --collect`,
    ]);
    return isDamaged || unrepaired + extra > 0 || found.braked ? exitCodes.incomplete : exitCodes.done;
  },
});

function toShare(text: string): number {
  const percent = Number(text);
  if (text.trim() !== '' && percent >= 0 && percent <= 100) return percent / 100;
  throw new Misuse('--sample must be a percentage from 0 to 100.');
}

export const url = command({
  name: 'url',
  summary: 'print the address of a stored file: a URL signed for five minutes, or a path on disk',
  examples: [['intake url 120045 resume', 'the resume of an application']],
  args: { '<application>': 'its id', '<kind>': 'resume, coverLetter, selectionCriteria or screen' },
  options: { advertiser },
  async run(context, { advertiser: name }, application = '', kindText = '') {
    const [applicationId, kind] = [toId(application), toKind(kindText, 'The kind')];
    await using app = await openFiles(context, 'url', name, 'read');
    const { advertisers, blobs, store } = app;
    const [file, ...others] = await store.files.findStoredFile(advertisers, applicationId, kind);
    const what = `${kind} of application ${applicationId}`;
    if (!file) throw new Misuse(`No ${what} is stored.`, 'intake status shows what is stored and what is waiting.');
    if (others.length > 0) throw new Misuse(`Several accounts have the ${what}.`, 'Name one with --advertiser.');
    const { advertiserId, key, fileName, contentType } = file;
    await app.audit({ advertiserId, action: 'url', applicationId, facts: { kind } });
    const url = await blobs.url(key, {
      fileName: fileName ?? `${kind}-${applicationId}`,
      contentType: contentType ?? 'application/octet-stream',
      expiresInMs: 5 * 60_000,
    });
    context.terminal.result({ advertiserId, url }, () => url);
    return exitCodes.done;
  },
});
