// `intake erase`: removes a person from the database and the file store, for good. Without --yes it only shows what would be erased.

import {
  type ErasedCounts,
  type ErasureCounts,
  type ErasureJob,
  isNothing,
  type Sought,
} from '../../domain/erasure.ts';
import { formatCount, formatIds } from '../../domain/format.ts';
import { parseAddress, toAccountId } from '../../domain/person.ts';
import { toId } from '../arguments.ts';
import { advertiser, type Context, command, flag, type Given, option } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { findHolder, loadHolders, openFiles, openKnown } from '../open.ts';

const options = {
  application: option('<id>', 'the application with this id', toId),
  jobSeeker: option('<id>', 'every application of this jobseeker account'),
  email: option('<address>', 'every application and prefill with this address'),
  retention: flag('everything older than RETENTION'),
  andFuture: flag(
    'with --email or --job-seeker: never store an application of this person again. Without it, new ones are stored',
  ),
  dryRun: flag('only show what would be erased'),
  yes: flag('erase; it cannot be undone'),
  advertiser,
};

export const erase = command({
  name: 'erase',
  summary: 'erase a person: rows, files, queue, quarantine; no later sweep brings them back',
  examples: [
    ['intake erase --application 120045 --dry-run', 'show what would be erased with one application'],
    ['intake erase --application 120045 --yes', 'erase it and print the receipt'],
    ['intake erase --job-seeker 3f2a9c --yes', 'all applications of one jobseeker account'],
    [
      'intake erase --email jo@example.com --dry-run',
      'show everything with this address, prefills and quarantine included',
    ],
    [
      'intake erase --email jo@example.com --and-future --yes',
      'the same; applications with this address that were never read before are not stored either',
    ],
    ['intake erase --retention --yes', 'everything older than RETENTION, without the safety limit of the worker'],
  ],
  options,
  async run(context, given) {
    const { terminal } = context;
    const person = toPerson(given);
    if (given.dryRun || !given.yes) {
      await using app = await openKnown(context, 'erase', given.advertiser);
      const sought = person ?? toOutdated(app.config.privacy.RETENTION);
      const found: (Pick<ErasureJob, 'advertiserId' | 'counts'> & { readonly applicationIds: readonly bigint[] })[] =
        [];
      for (const advertiserId of await loadHolders(app, given.advertiser)) {
        const { applicationIds, counts } = await app.store.privacy.findPerson(advertiserId, sought);
        found.push({ advertiserId, applicationIds, counts });
      }
      terminal.result({ erased: false, advertisers: found }, () =>
        [
          ...found.map(({ advertiserId, applicationIds, counts }) => {
            const ids = applicationIds.length > 0 ? `\n  ${formatIds(applicationIds)}` : '';
            return `Advertiser ${advertiserId}: ${toWords(counts)}.${ids}`;
          }),
          given.dryRun ? 'Nothing was erased.' : 'Nothing was erased. Repeat with --yes to erase; it cannot be undone.',
        ].join('\n'),
      );
      return given.dryRun ? exitCodes.done : exitCodes.usage;
    }
    const receipts = await eraseAll(context, person, given);
    terminal.result({ erased: true, receipts: receipts.map(toReceipt) }, () => toReceiptLines(receipts).join('\n'));
    return exitCodes.done;
  },
});

/** The person to erase; null for --retention. */
function toPerson({ application, jobSeeker, email, retention, andFuture }: Given<typeof options>): Sought | null {
  if ([application, jobSeeker, email, retention || undefined].filter((one) => one !== undefined).length !== 1) {
    throw new Misuse('Name exactly one: --application, --job-seeker, --email or --retention.');
  }
  if (andFuture && jobSeeker === undefined && email === undefined) {
    throw new Misuse('--and-future needs --email or --job-seeker: an application does not name a person for good.');
  }
  if (application !== undefined) return { by: 'application', applicationId: application };
  if (jobSeeker !== undefined) {
    if (toAccountId(jobSeeker) === null)
      throw new Misuse('--job-seeker must be the id of an account; this value stands for no account.');
    return { by: 'jobseeker', jobSeekerId: jobSeeker };
  }
  if (email !== undefined) {
    if (parseAddress(email) === null) throw new Misuse('--email must be a whole address.');
    return { by: 'address', email };
  }
  return null;
}

function toOutdated(retentionMs: number | null): Sought {
  if (retentionMs === null) throw new Misuse('RETENTION is off: there is no age to erase by.');
  return { by: 'retention', before: new Date(Date.now() - retentionMs), limit: Number.MAX_SAFE_INTEGER };
}

async function eraseAll(context: Context, person: Sought | null, given: Given<typeof options>): Promise<ErasureJob[]> {
  const { signal, terminal } = context;
  const { createExtractErasure } = await import('../../app/extract.ts');
  const { erase: erasePerson, finishErasures, retain } = await import('../../sync/privacy/erase.ts');
  await using app = await openFiles(context, 'erase', given.advertiser, 'erase');
  const { config, store, blobs, crashPoint, by } = app;
  const sought = person ?? toOutdated(config.privacy.RETENTION);
  using progress = terminal.openProgress('erasures');
  const closed = new Set<string>();
  const onStep = (job: ErasureJob) => {
    if (job.closedAt !== null) closed.add(job.jobId);
    progress.update(closed.size, null, job.closedAt === null ? 'rows are deleted, deleting files' : '');
  };
  const deps = { store, blobs, crashPoint, onStep, eraseExtracts: createExtractErasure(config, store, crashPoint) };
  const advertisers = await loadHolders(app, given.advertiser);
  if (sought.by === 'retention') {
    // An operator has confirmed it, so the brake does not apply.
    const request = { advertisers, before: sought.before, released: true, by, signal };
    const begun: ErasureJob[] = [];
    await retain({ store, onStep: (job) => begun.push(job) }, request);
    const open = await Promise.all(advertisers.map((id) => store.erasures.loadOpen(id)));
    return await finishErasures(deps, [...open.flat(), ...begun], signal);
  }
  // An address is the same person at every advertiser; an id must match at one only. If nobody matches, each has a receipt that says so.
  const fitting = sought.by === 'address' ? [] : await findHolder(store, advertisers, sought);
  const receipts: ErasureJob[] = [];
  for (const advertiserId of fitting.length === 0 ? advertisers : fitting) {
    receipts.push(...(await erasePerson(deps, { advertiserId, sought, future: given.andFuture, by, signal })));
  }
  return receipts;
}

/** A line for each receipt that erased something, or one line if none did. --json shows all. */
function toReceiptLines(receipts: readonly ErasureJob[]): string[] {
  const toName = ({ jobId, closedAt }: ErasureJob) => `Receipt ${jobId}, closed ${closedAt?.toISOString()}`;
  const found = receipts.filter(({ counts }) => !isNothing(counts));
  if (found.length > 0) return found.map((one) => `${toName(one)}: ${toWords(one.counts)}.`);
  const [first] = receipts;
  return [`No matching data is stored. ${first ? toName(first) : 'Nothing was erased'}.`];
}

/** A receipt as JSON, without the value that was searched for. `checks` counted the second checks of earlier releases. */
function toReceipt({ advertiserId, jobId, soughtBy, requestedAt, requestedBy, closedAt, counts }: ErasureJob) {
  return { advertiserId, jobId, soughtBy, requestedAt, requestedBy, closedAt, checks: 0, counts };
}

const labels: readonly (readonly [keyof ErasureCounts, string, string?])[] = [
  ['applications', 'application'],
  ['attachments', 'attachment'],
  ['versions', 'earlier version'],
  ['screens', 'screen'],
  ['answers', 'answer'],
  ['downloads', 'waiting download'],
  ['quarantined', 'element in quarantine', 'elements in quarantine'],
  ['prefills', 'prefill'],
  ['files', 'file'],
];

function toWords(counts: ErasedCounts): string {
  const parts = labels.flatMap(([name, one, many]) =>
    counts[name] === 0 ? [] : [formatCount(counts[name], one, many)],
  );
  if (parts.length === 0) return 'nothing';
  const { shared, keptVersions, extractFiles = [], extractsOfOthers = [] } = counts;
  const others = shared > 0 ? ` (${shared} of them shared with other applications, and kept for those)` : '';
  const kept = formatCount(keptVersions, 'version');
  const extracted = extractFiles.length > 0 ? `; deleted from extracts: ${extractFiles.join(', ')}` : '';
  const unreached =
    extractsOfOthers.length > 0 ? `; not erased, because another database owns it: ${extractsOfOthers.join(', ')}` : '';
  return `${parts.join(', ')}${others}${extracted}${unreached}${keptVersions > 0 ? `; ${kept} of deleted files remain: the storage does not let Intake delete them` : ''}`;
}
