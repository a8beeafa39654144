// The download loop starts a download run whenever downloads are due, for as long as the worker lives. If the storage or the database is
// unavailable, it waits, longer each time, and reports why.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Trouble } from '../../domain/trouble.ts';
import type { DownloadSummary } from '../files/download-run.ts';
import { backoffAfter, type createTroubles, toTrouble } from '../retry.ts';
import { createTeller, type Pass, type Reports, toErrorKind } from './pass.ts';
import type { Heartbeat } from './watchdog.ts';

/** What the loop passes to a download run. */
export interface DownloadWatch {
  readonly signal: AbortSignal;
  readonly heartbeat: Heartbeat;
  /** A file was stored, so the last trouble is over. */
  readonly onStored: () => void;
  /** The source of this account cannot be reached. */
  readonly onUnreachable: (name: string) => void;
}

export interface DownloadLoopDeps extends Reports {
  readonly accounts: readonly { readonly name: string }[];
  /** Null: nothing was due. */
  readonly runDownloads: (watch: DownloadWatch) => Promise<DownloadSummary | null>;
  /** Resolves when downloads were queued, or after the timeout. */
  readonly untilQueued: (timeoutMs: number, signal: AbortSignal) => Promise<void>;
}

const backoffRange = { minMs: 1_000, baseMs: 2_000, maxMs: 60_000 };
/** How often the queue is checked if no notification arrives. */
const checkEveryMs = 2_000;
/** How long a trouble stays reported while nothing is due. Files that failed are postponed, and until one is due again nothing tests it. */
const knownForMs = 60_000;

/** The loop notes in `troubles` why the downloads of the accounts wait. */
export function startDownloadLoop(
  deps: DownloadLoopDeps & Pick<DownloadWatch, 'onUnreachable'>,
  troubles: ReturnType<typeof createTroubles>,
  signal: AbortSignal,
) {
  const { onUnreachable } = deps;
  const names = deps.accounts.map(({ name }) => name);
  let trouble: Trouble | null = null;
  let troubleAt = 0;
  const onStored = () => {
    trouble = null;
    troubles.clear('downloads', names);
  };

  async function runOn(): Promise<void> {
    using heartbeat = deps.watchdog.begin({ task: 'downloads' });
    for (let failures = 0; !signal.aborted; ) {
      const tell = createTeller(deps, 'downloads');
      try {
        const summary = await deps.runDownloads({ signal, heartbeat, onStored, onUnreachable });
        failures = 0;
        if (summary !== null || performance.now() - troubleAt > knownForMs) onStored();
        if (summary !== null) {
          tell('done', toFileCounts(summary));
          deps.log.info({ ...summary }, 'files fetched');
        }
      } catch (error) {
        if (signal.aborted) return;
        const kind = toErrorKind(error);
        tell('failed', { kind });
        trouble = toTrouble(error);
        troubleAt = performance.now();
        const waitMs = backoffAfter(trouble, ++failures, backoffRange);
        troubles.note('downloads', names, trouble, waitMs);
        deps.log.warn({ kind, attempt: failures, waitMs: Math.round(waitMs), err: error }, 'downloads paused');
        await heartbeat.whileWaiting(sleep(waitMs, undefined, { signal }).catch(() => {}));
      }
      heartbeat.move();
      await deps.untilQueued(checkEveryMs, signal).catch(() => {});
    }
  }

  return { trouble: () => trouble, ended: runOn() };
}

function toFileCounts(summary: DownloadSummary): Pick<Pass, 'files'> {
  const { stored, linked, infected, missing, rejected, givenUp, failures } = summary;
  return {
    files: { stored: stored - linked, linked, infected, missing, rejected, given_up: givenUp, failed: failures },
  };
}
