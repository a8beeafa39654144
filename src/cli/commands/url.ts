// `intake url`: prints an address at which a stored file can be opened; a presigned one expires after five minutes.
import { formatBytes } from '../../domain/format.ts';
import type { ApplicationFile } from '../../store/files/stored-files.ts';
import { toId, toKind } from '../arguments.ts';
import { advertiser, command, flag } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openFiles } from '../open.ts';
import { toPrintable } from '../terminal.ts';

const expiresInMs = 5 * 60_000;

export const url = command({
  name: 'url',
  summary: 'print the address of a stored file: a URL signed for five minutes, or a path on disk',
  examples: [
    ['intake url 120045 resume', 'the resume of an application'],
    ['intake url --all 120045 --json', 'every file of it: address, name, type, size and sha256'],
  ],
  args: [
    ['<application>', 'its id'],
    ['[kind]', 'resume, coverLetter, selectionCriteria or screen'],
  ],
  options: { all: flag('every file of the application; files that are not stored show their state'), advertiser },
  async run(context, { advertiser: name, all: isAll }, application = '', kindText?: string) {
    if (isAll === (kindText !== undefined)) {
      throw new Misuse(isAll ? '--all takes no kind.' : 'Name a kind, or use --all for every file.');
    }
    const { terminal } = context;
    const applicationId = toId(application);
    const kind = kindText === undefined ? null : toKind(kindText);
    await using app = await openFiles(context, 'url', name, 'read');
    const { blobs, store } = app;
    const advertisers = app.accounts.map(({ advertiserId }) => advertiserId);
    const isWanted = (file: ApplicationFile) => kind === null || (file.kind === kind && file.key !== null);
    const holders = [...(await store.files.load(advertisers, applicationId))]
      .map(([advertiserId, files]) => ({ advertiserId, wanted: files.filter(isWanted) }))
      .filter(({ wanted }) => kind === null || wanted.length > 0);
    const what = `${kind === null ? '' : `${kind} of `}application ${applicationId}`;
    const [holder] = holders;
    if (!holder) throw new Misuse(`No ${what} is stored.`, 'intake status shows what is stored and what is waiting.');
    if (holders.length > 1) throw new Misuse(`Several accounts have the ${what}.`, 'Name one with --advertiser.');
    const { advertiserId, wanted } = holder;
    const facts = kind === null ? { kind: 'all', files: wanted.filter(({ key }) => key !== null).length } : { kind };
    await store.privacy.recordAudit({ advertiserId, action: 'url', applicationId, by: app.by, facts });
    const toUrl = (key: string, { fileName, contentType, kind }: Described) =>
      blobs.url(key, {
        fileName: fileName ?? `${kind}-${applicationId}`,
        contentType: contentType ?? 'application/octet-stream',
        expiresInMs,
      });
    const files = await Promise.all(
      wanted.map(async ({ key, ...file }) => ({ ...file, url: key && (await toUrl(key, file)) })),
    );
    const [only] = files;
    if (kind !== null && only?.url) terminal.result({ advertiserId, url: only.url }, () => only.url ?? '');
    else terminal.result({ advertiserId, applicationId, files }, () => renderFiles(files));
    return exitCodes.done;
  },
});

type Described = Omit<ApplicationFile, 'key'>;

/** A file that is not stored has no address, size or sha256. */
function renderFiles(files: readonly (Described & { readonly url: string | null })[]): string {
  if (files.length === 0) return 'The application has no files.';
  return files
    .map(({ kind, url, ...file }) => {
      const type = file.detectedType ?? file.contentType ?? 'unknown type';
      const stored = [formatBytes(file.sizeBytes ?? 0), type, `sha256 ${file.sha256}`];
      const facts = url === null ? [file.state, file.reason].filter((part) => part !== null) : stored;
      return `${toPrintable(`${kind}: ${facts.join(', ')}`)}${url === null ? '' : `\n  ${url}`}`;
    })
    .join('\n');
}
