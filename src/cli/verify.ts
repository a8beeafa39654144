// `intake verify`: is every stored file where its row says, with the bytes it says? What is damaged is queued again.

import type { VerifySummary } from '../app/files.ts';
import { formatBytes, formatCount } from '../domain/format.ts';
import { requireAdvertiser } from './arguments.ts';
import { command } from './command.ts';
import { createCrashPoint } from './crash-point.ts';
import { exitCodes } from './exit-codes.ts';
import { Misuse } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';
import type { Terminal } from './terminal.ts';

interface VerifyOptions {
  readonly sample: string;
  readonly full: boolean;
  readonly collect: boolean;
  readonly advertiser?: string;
}

export const verify = command<VerifyOptions>({
  name: 'verify',
  summary: 'compare rows with objects and bytes, and objects with rows; queue again what is damaged',
  examples: [
    ['intake verify', 'every row and object, and the hundredth of the bytes that was read longest ago'],
    ['intake verify --sample 10', 'the tenth of the bytes that was read longest ago'],
    ['intake verify --full', 'the bytes of every file'],
    ['intake verify --collect', 'and delete what nothing refers to, also where that is more than a fiftieth'],
  ],
  shape: (shaped) =>
    shaped
      .option('--sample <percent>', 'how much of the bytes is read, those first that were read longest ago', '1')
      .option('--full', 'read the bytes of every file', false)
      .option('--collect', 'delete what nothing has referred to for a day, however much that is', false)
      .option('--advertiser <name>', 'only this one of several configured accounts')
      .addHelpText(
        'after',
        '\nEnds with 3 as long as a file is missing or damaged, and when an object is found that no row knows.',
      ),
  async run({ env, signal, terminal }, { sample, full, collect, advertiser }) {
    const share = full ? 1 : toShare(sample);
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy', 'blobs'] });
    requireAdvertiser(config.source.advertisers, advertiser);
    const { verifyOnce } = await import('../app/files.ts');
    const found = await showVerify(terminal, (onStep) =>
      verifyOnce(config, {
        ...{ share, released: collect, advertiser, signal, onStep },
        crashPoint: createCrashPoint(env.INTAKE_CRASH_AT),
      }),
    );
    const isDamaged = found.missing + found.damaged > 0;
    const { unrepaired, extra } = found;
    terminal.result(found, () =>
      [
        `${formatCount(found.blobs, 'blob')} compared, the bytes of ${found.read} read (${formatBytes(found.readBytes)}).`,
        isDamaged
          ? `${found.missing} missing, ${found.damaged} damaged: ${formatCount(found.requeued, 'file is', 'files are')} queued again${found.lost > 0 ? `, ${formatCount(found.lost, 'earlier version is', 'earlier versions are')} lost` : ''}. Next: intake sync`
          : `${unrepaired > 0 ? 'No other' : 'None'} is missing or damaged.`,
        ...(unrepaired > 0
          ? [
              `${formatCount(unrepaired, 'file')} found missing or damaged earlier: not fetched again yet. Next: intake sync. Where the source did not have the file, run intake retry first.`,
            ]
          : []),
        ...(extra > 0
          ? [
              `${formatCount(extra, 'object was', 'objects were')} in no row. They are marked, and deleted after a day unless a row refers to them by then.`,
            ]
          : []),
        ...(found.foreign > 0
          ? [`Left alone: ${formatCount(found.foreign, 'object')} with names that Intake does not give.`]
          : []),
        ...(found.collected > 0
          ? [`Deleted: ${formatCount(found.collected, 'object')} that nothing referred to for a day.`]
          : []),
        ...(found.braked
          ? [
              `${found.orphans} objects are referred to by nothing. That is too many at once, so none was deleted: an older database beside a newer bucket looks like this. To delete them all the same: intake verify --collect`,
            ]
          : []),
      ].join('\n'),
    );
    return isDamaged || unrepaired + extra > 0 || found.braked ? exitCodes.incomplete : exitCodes.done;
  },
});

async function showVerify(
  terminal: Terminal,
  run: (onStep: (summary: VerifySummary) => void) => Promise<VerifySummary>,
): Promise<VerifySummary> {
  using progress = await terminal.openProgress('blobs');
  return await run(({ blobs, readBytes }) => progress.update(blobs, null, formatBytes(readBytes)));
}

function toShare(text: string): number {
  const percent = Number(text);
  if (text.trim() !== '' && percent >= 0 && percent <= 100) return percent / 100;
  throw new Misuse('--sample must be a percentage from 0 to 100.');
}
