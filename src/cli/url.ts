// `intake url`: prints an address at which a stored file can be opened; a presigned one expires after five minutes.
import { formatBytes } from '../domain/format.ts';
import type { ApplicationFile } from '../store/files/stored-files.ts';
import { toId, toKind } from './arguments.ts';
import { advertiser, command, flag } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { Misuse } from './failure.ts';
import { openFiles } from './open.ts';
import { toPrintable } from './terminal.ts';

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
    const applicationId = toId(application);
    const kind = kindText === undefined ? null : toKind(kindText);
    await using app = await openFiles(context, 'url', name, 'read');
    const { blobs, store } = app;
    const { terminal } = context;
    const recordUse = (advertiserId: bigint, facts: { readonly kind: string; readonly files?: number }) =>
      store.privacy.recordAudit({ advertiserId, action: 'url', applicationId, by: app.by, facts });
    const toUrl = (key: string, file: Described) =>
      blobs.url(key, {
        fileName: file.fileName ?? `${file.kind}-${applicationId}`,
        contentType: file.contentType ?? 'application/octet-stream',
        expiresInMs,
      });
    const of = `application ${applicationId}`;
    const advertisers = app.accounts.map(({ advertiserId }) => advertiserId);
    const found = [...(await store.files.load(advertisers, applicationId))];
    if (kind !== null) {
      const one = requireOne(
        found.flatMap(([advertiserId, all]) =>
          all.flatMap(({ key, ...file }) =>
            file.kind === kind && key !== null ? [{ ...file, advertiserId, key }] : [],
          ),
        ),
        { none: `No ${kind} of ${of} is stored.`, several: 'Several accounts have such a file.' },
      );
      const { advertiserId } = one;
      await recordUse(advertiserId, { kind });
      const address = await toUrl(one.key, one);
      terminal.result({ advertiserId, url: address }, () => address);
      return exitCodes.done;
    }
    const [advertiserId, all] = requireOne(found, {
      none: `No ${of} is stored.`,
      several: `Several accounts have an ${of}.`,
    });
    await recordUse(advertiserId, { kind: 'all', files: all.filter(({ key }) => key !== null).length });
    const described = await Promise.all(
      all.map(async ({ key, ...file }) => ({ ...file, url: key && (await toUrl(key, file)) })),
    );
    terminal.result({ advertiserId, applicationId, files: described }, () => renderFiles(described));
    return exitCodes.done;
  },
});

function requireOne<T>(found: readonly T[], words: { readonly none: string; readonly several: string }): T {
  const [only] = found;
  if (only && found.length === 1) return only;
  if (only) throw new Misuse(words.several, 'Name one with --advertiser.');
  throw new Misuse(words.none, 'intake status shows what is stored and what is waiting.');
}

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
