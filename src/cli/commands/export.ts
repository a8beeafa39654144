// `intake export`: writes everything stored about one person into a folder, for an access request.
import { resolve } from 'node:path';
import { formatCount } from '../../domain/format.ts';
import { toId } from '../arguments.ts';
import { advertiser, command, option } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { findHolder, loadHolders, openFiles } from '../open.ts';

export const exportCommand = command({
  name: 'export',
  summary: 'write all rows and files of one person into a folder: export.json, and files/ beside it',
  examples: [
    ['intake export 120045', 'the person of this application, into ./intake-export-120045'],
    ['intake export 120045 --to /secure/request-17', 'into a folder of your choice, which must not exist yet'],
  ],
  args: [
    [
      '<application>',
      'the id of one of their applications; includes others with the same jobseeker account and address',
    ],
  ],
  options: { to: option('<folder>', 'the folder to create; readable by you only'), advertiser },
  async run(context, { to, advertiser: name }, application = '') {
    const { signal, terminal } = context;
    const applicationId = toId(application);
    const folder = resolve(to ?? `intake-export-${applicationId}`);
    const { exportPerson } = await import('../../sync/privacy/export.ts');
    await using app = await openFiles(context, 'export', name, 'read');
    const { store, blobs } = app;
    const holders = await loadHolders(app, name);
    const [advertiserId] = await findHolder(store, holders, { by: 'application', applicationId });
    const request = { applicationId, folder, by: app.by, signal };
    const written =
      advertiserId === undefined ? null : await exportPerson({ store, blobs }, { ...request, advertiserId });
    if (written === null) {
      const next = 'Check the id; intake status shows which advertisers are stored.';
      throw new Misuse(`Application ${applicationId} is not stored, or it was erased.`, next);
    }
    const { applicationIds, leftOut, prefills, files, missing } = written;
    const lost = missing > 0 ? `; ${formatCount(missing, 'file is', 'files are')} not in the store: intake verify` : '';
    const others =
      leftOut > 0
        ? `\nLeft out: ${formatCount(leftOut, 'application')} of the same jobseeker account with another address, which may be somebody else's.`
        : '';
    terminal.result(
      { exports: [written] },
      () =>
        `${written.folder}: applications ${applicationIds.join(', ')}; ${formatCount(files, 'file')}, ${formatCount(prefills, 'prefill')}${lost}.${others}`,
    );
    return missing > 0 ? exitCodes.incomplete : exitCodes.done;
  },
});
