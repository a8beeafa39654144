// The rights of a person: `intake erase` removes them from the database and the file store, for good; without --yes it only shows what would
// be erased. `intake export` writes everything stored about them into a folder, for an access request.
import { resolve } from 'node:path';
import { type ErasedCounts, type ErasureJob, isNothing, type Sought } from '../../domain/erasure.ts';
import { formatCount, formatIds } from '../../domain/format.ts';
import { parseAddress, toAccountId } from '../../domain/person.ts';
import { advertiser, type Context, command, flag, type Given, option, toId } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openFiles, openKnown } from '../open.ts';

type Known = Pick<Awaited<ReturnType<typeof openKnown>>, 'store' | 'advertisers'>;

/** The named advertiser, or all that may hold data. Accounts no longer configured count too: a person's rights do not end with them. */
async function loadHolders({ store, advertisers }: Known, name: string | undefined): Promise<readonly bigint[]> {
  return name === undefined
    ? [...new Set([...advertisers, ...(await store.advertisers.loadAdvertiserIds())])]
    : advertisers;
}

/**
 * The one of these advertisers that holds data for this id, or is erasing it; none or one. The spec does not say whether ids are unique
 * across advertisers.
 */
async function findHolder(
  { store }: Known,
  advertisers: readonly bigint[],
  sought: Sought,
): Promise<readonly bigint[]> {
  const fitting: bigint[] = [];
  for (const id of advertisers) {
    const isHeld = !isNothing((await store.privacy.findPerson(id, sought)).counts);
    // An interrupted erasure has no rows any more. Without its job, a person at another advertiser would seem to be the only match.
    if (isHeld || (await store.erasures.loadOpenErasures(id, sought)).length > 0) fitting.push(id);
  }
  if (fitting.length <= 1) return fitting;
  throw new Misuse(
    `This id is held at ${fitting.length} advertisers (${fitting.join(', ')}), where it may name different people.`,
    'Name one with --advertiser; intake status shows which name has which id.',
  );
}

const options = {
  application: option('<id>', 'the application with this id', toId),
  jobSeeker: option('<id>', 'every application of this jobseeker account'),
  email: option('<address>', 'every application and prefill with this address'),
  retention: flag('everything older than RETENTION'),
  andFuture: flag('with --email or --job-seeker: store no application of them again. Without it, new ones are stored'),
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
    ['intake erase --email jo@example.com --dry-run', 'everything with this address, prefills and quarantine included'],
    [
      'intake erase --email jo@example.com --and-future --yes',
      'erase it; what was never read before is not stored either',
    ],
    ['intake erase --retention --yes', 'everything older than RETENTION, without the safety limit of the worker'],
  ],
  options,
  async run(context, given) {
    const { terminal } = context;
    const { andFuture, dryRun, yes, advertiser } = given;
    const person = toPerson(given);
    if (!dryRun && yes) {
      const receipts = await eraseAll(context, person, andFuture, advertiser);
      // Without what names the person.
      const shown = receipts.map(({ applicationIds: _ids, hashes: _hashes, ...receipt }) => receipt);
      terminal.result({ erased: true, receipts: shown }, () => toReceiptLines(receipts));
      return exitCodes.done;
    }
    await using app = await openKnown(context, 'erase', advertiser);
    const sought = person ?? toOutdated(app.config.privacy.RETENTION);
    const advertisers = await Array.fromAsync(await loadHolders(app, advertiser), async (advertiserId) => {
      const { applicationIds, counts } = await app.store.privacy.findPerson(advertiserId, sought);
      return { advertiserId, applicationIds, counts };
    });
    const end = dryRun ? 'Nothing was erased.' : 'Nothing was erased. Repeat with --yes to erase; it cannot be undone.';
    terminal.result({ erased: false, advertisers }, () => [
      ...advertisers.flatMap(({ advertiserId, applicationIds: ids, counts }) => [
        `Advertiser ${advertiserId}: ${toWords(counts)}.`,
        ids.length > 0 && `  ${formatIds(ids)}`,
      ]),
      end,
    ]);
    return dryRun ? exitCodes.done : exitCodes.usage;
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
  if (jobSeeker !== undefined && toAccountId(jobSeeker) === null)
    throw new Misuse('--job-seeker must be the id of an account; this value stands for no account.');
  if (email !== undefined && parseAddress(email) === null) throw new Misuse('--email must be a whole address.');
  if (application !== undefined) return { by: 'application', applicationId: application };
  if (jobSeeker !== undefined) return { by: 'jobseeker', jobSeekerId: jobSeeker };
  return email === undefined ? null : { by: 'address', email };
}

function toOutdated(retentionMs: number | null): Sought {
  if (retentionMs === null) throw new Misuse('RETENTION is off: there is no age to erase by.');
  return { by: 'retention', before: new Date(Date.now() - retentionMs), limit: Number.MAX_SAFE_INTEGER };
}

async function eraseAll(context: Context, person: Sought | null, future: boolean, advertiser: string | undefined) {
  const { signal, terminal } = context;
  const { createExtractErasure } = await import('../../app/extract.ts');
  const { erase: erasePerson, finishErasures, retain } = await import('../../sync/privacy/erase.ts');
  await using app = await openFiles(context, 'erase', advertiser, 'erase');
  const { config, store, blobs, crashPoint, by } = app;
  const sought = person ?? toOutdated(config.privacy.RETENTION);
  using progress = terminal.openProgress('erasures');
  const closed = new Set<string>();
  const onStep = (job: ErasureJob) => {
    if (job.closedAt !== null) closed.add(job.jobId);
    progress.update(closed.size, null, job.closedAt === null ? 'rows are deleted, deleting files' : '');
  };
  const deps = { store, blobs, crashPoint, onStep, eraseExtracts: createExtractErasure(config, store, crashPoint) };
  const advertisers = await loadHolders(app, advertiser);
  if (sought.by === 'retention') {
    // An operator has confirmed it, so the brake does not apply.
    const begun: ErasureJob[] = [];
    const request = { advertisers, before: sought.before, released: true, by, signal };
    await retain({ store, onStep: (job) => begun.push(job) }, request);
    const open = await Promise.all(advertisers.map((id) => store.erasures.loadOpenErasures(id)));
    return await finishErasures(deps, [...open.flat(), ...begun], signal);
  }
  // An address is the same person at every advertiser; an id must match at one only. If nobody matches, each has a receipt that says so.
  const fitting = sought.by === 'address' ? [] : await findHolder(app, advertisers, sought);
  const receipts = await Array.fromAsync(fitting.length === 0 ? advertisers : fitting, (advertiserId) =>
    erasePerson(deps, { advertiserId, sought, future, by, signal }),
  );
  return receipts.flat();
}

/** A line for each receipt that erased something, or one line if none did. --json shows all. */
function toReceiptLines(receipts: readonly ErasureJob[]): string[] {
  const toName = ({ jobId, closedAt }: ErasureJob) => `Receipt ${jobId}, closed ${closedAt?.toISOString()}`;
  const found = receipts.filter(({ counts }) => !isNothing(counts));
  if (found.length > 0) return found.map((one) => `${toName(one)}: ${toWords(one.counts)}.`);
  const [first] = receipts;
  return [`No matching data is stored. ${first ? toName(first) : 'Nothing was erased'}.`];
}

function toWords(counts: ErasedCounts): string {
  const { applications, quarantined, prefills, files, shared, keptVersions } = counts;
  const { extractFiles = [], extractsOfOthers = [] } = counts;
  const parts = [
    applications > 0 && formatCount(applications, 'application'),
    quarantined > 0 && formatCount(quarantined, 'element in quarantine', 'elements in quarantine'),
    prefills > 0 && formatCount(prefills, 'prefill'),
    files > 0 && formatCount(files, 'file'),
  ].filter((part) => part !== false);
  if (parts.length === 0) return 'nothing';
  const kept = formatCount(keptVersions, 'version');
  return [
    `${parts.join(', ')}${shared > 0 ? ` (${shared} of them shared with other applications, and kept for those)` : ''}`,
    extractFiles.length > 0 && `deleted from extracts: ${extractFiles.join(', ')}`,
    extractsOfOthers.length > 0 && `not erased, because another database owns it: ${extractsOfOthers.join(', ')}`,
    keptVersions > 0 && `${kept} of deleted files remain: the storage does not let Intake delete them`,
  ]
    .filter((part) => part !== false)
    .join('; ');
}

export const exportCommand = command({
  name: 'export',
  summary: 'write all rows and files of one person into a folder: export.json, and files/ beside it',
  examples: [
    ['intake export 120045', 'the person of this application, into ./intake-export-120045'],
    ['intake export 120045 --to /secure/request-17', 'into a folder of your choice, which must not exist yet'],
  ],
  args: { '<application>': 'one of theirs; others with the same jobseeker account and address are included' },
  options: { to: option('<folder>', 'the folder to create; readable by you only'), advertiser },
  async run(context, { to, advertiser: name }, application = '') {
    const { signal, terminal } = context;
    const applicationId = toId(application);
    const folder = resolve(to ?? `intake-export-${applicationId}`);
    const { exportPerson } = await import('../../sync/privacy/export.ts');
    await using app = await openFiles(context, 'export', name, 'read');
    const holders = await loadHolders(app, name);
    const [advertiserId] = await findHolder(app, holders, { by: 'application', applicationId });
    const written =
      advertiserId && (await exportPerson(app, { advertiserId, applicationId, folder, by: app.by, signal }));
    if (!written) {
      const next = 'Check the id; intake status shows which advertisers are stored.';
      throw new Misuse(`Application ${applicationId} is not stored, or it was erased.`, next);
    }
    const { applicationIds, leftOut, prefills, prefillsLeftOut, files, missing } = written;
    const lost = missing > 0 ? `; ${formatCount(missing, 'file is', 'files are')} not in the store: intake verify` : '';
    terminal.result({ exports: [written] }, () => [
      `${written.folder}: applications ${applicationIds.join(', ')}; ${formatCount(files, 'file')}, ${formatCount(prefills, 'prefill')}${lost}.`,
      leftOut > 0 &&
        `Left out: ${formatCount(leftOut, 'application')} of the same jobseeker account with another address, which may be somebody else's.`,
      prefillsLeftOut > 0 &&
        `Left out: ${formatCount(prefillsLeftOut, 'prefill')} with the same account or address, which may be somebody else's.`,
    ]);
    return missing > 0 ? exitCodes.incomplete : exitCodes.done;
  },
});
