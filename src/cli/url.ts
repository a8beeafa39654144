// `intake url`: prints an address at which a stored file can be opened; a presigned one expires after five minutes.
import type { FileUrl } from '../app/files.ts';
import { formatBytes } from '../domain/format.ts';
import { toId, toKind } from './arguments.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { Failure, Misuse } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';

const expiresInMs = 5 * 60_000;

export const url = command<{ readonly advertiser?: string; readonly all?: boolean }>({
  name: 'url',
  summary: 'print the address of a stored file: a URL signed for five minutes, or a path on disk',
  examples: [
    ['intake url 120045 resume', 'the resume of an application'],
    ['intake url --all 120045 --json', 'every file of it: address, name, type, size and sha256'],
  ],
  shape: (shaped) =>
    shaped
      .argument('<application>', 'its id')
      .argument('[kind]', 'resume, coverLetter, selectionCriteria or screen')
      .option('--all', 'every file of the application; files that are not stored show their state')
      .option('--advertiser <name>', 'the account of the application, where several are configured'),
  async run({ env, signal, terminal }, { advertiser, all = false }, application = '', kindText) {
    if (all === (kindText !== undefined)) {
      throw new Misuse(all ? '--all takes no kind.' : 'Name a kind, or use --all for every file.');
    }
    const request = { applicationId: toId(application), expiresInMs, advertiser, signal };
    const kind = kindText === undefined ? null : toKind(kindText);
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy', 'blobs'], advertiser });
    const { loadAllFileUrls, loadFileUrls } = await import('../app/files.ts');
    const of = `application ${request.applicationId}`;
    if (kind === null) {
      const found = requireOne(await loadAllFileUrls(config, request), {
        none: `No ${of} is stored.`,
        several: `Several accounts have an ${of}.`,
      });
      terminal.result(found, () => renderFiles(found.files));
    } else {
      const found = requireOne(await loadFileUrls(config, { ...request, kind }), {
        none: `No ${kind} of ${of} is stored.`,
        several: 'Several accounts have such a file.',
      });
      terminal.result(found, () => found.url);
    }
    return exitCodes.done;
  },
});

function requireOne<T>(found: readonly T[], words: { readonly none: string; readonly several: string }): T {
  const [only] = found;
  if (only && found.length === 1) return only;
  throw new Failure(exitCodes.usage, only ? words.several : words.none, {
    kept: 'Everything, untouched.',
    next: only ? 'Name one with --advertiser.' : 'intake status shows what is stored and what is waiting.',
  });
}

function renderFiles(files: readonly FileUrl[]): string {
  if (files.length === 0) return 'The application has no files.';
  return files
    .map((file) =>
      file.url === null
        ? `${file.kind}: ${[file.state, file.reason].filter((part) => part !== null).join(', ')}`
        : `${file.kind}: ${formatBytes(file.sizeBytes ?? 0)}, ${file.detectedType ?? file.contentType ?? 'unknown type'}, sha256 ${file.sha256}\n  ${file.url}`,
    )
    .join('\n');
}
