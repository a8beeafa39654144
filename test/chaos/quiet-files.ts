// Virus flags without other faults: during a download run that does not end, on bytes that another person sent too, lifted during a slow
// delete, and on a file whose worker dies right after its put. Each must end as promised, within the promised time.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import { within, withSlack } from './settings.ts';
import type { Stage } from './stage.ts';

/** P8 promises a minute; on a busy machine the same work takes longer. */
const toRecallMs = () => Math.max(60_000, withSlack(20_000));

/** Plays the scenarios whose faults are in the plan; returns the findings. */
export async function playFlags(stage: Stage, account: BoardAdvertiser): Promise<string[]> {
  const has = (name: string) => stage.plan.schedule.some((fault) => fault.name === name);
  const [first, second] = await findHeld(stage, account);
  if (first === undefined || second === undefined) return [];
  return [
    ...(has('longRun') ? await playLongRun(stage, account, [first, second]) : []),
    ...(has('flagBriefly') ? await playTwin(stage, [first, second]) : []),
    ...(has('flagBriefly') ? await playSlowDelete(stage, [first, second]) : []),
    ...(has('flagBriefly') ? await playKilledPut(stage, first) : []),
  ];
}

/** One file downloads very slowly, so its download run does not end. Meanwhile another file is flagged. */
async function playLongRun(stage: Stage, account: BoardAdvertiser, ids: readonly [bigint, bigint]): Promise<string[]> {
  const [flagged, dripping] = ids;
  const held = stage.workload.shareFiles([flagged]);
  await within(30_000, () => isStored(stage, flagged, held));
  const drip = { kind: 'drip', on: 'files', pieceBytes: 1, everyMs: 1_500, times: null } as const;
  const number = account.fault({ ...drip, applicationId: dripping });
  try {
    stage.workload.shareFiles([dripping]);
    const isFetching = async () =>
      (await find(stage, `intake.downloads WHERE application_id = $1 AND lease_token IS NOT NULL`, [dripping])) > 0;
    await within(30_000, isFetching);
    const { lift } = stage.workload.flagSome([flagged]);
    stage.count('quiet: flags beside a long run');
    const isGone = await untilUnreadable(stage, flagged, held);
    lift();
    return isGone
      ? []
      : [`P8: the bytes of ${flagged} are readable a minute after they were flagged, beside a long run`];
  } finally {
    account.clearFaults(number);
  }
}

/** Two people sent the same bytes, and one file is flagged. The other application must get an event, for consumers that copied its file. */
async function playTwin(stage: Stage, ids: readonly [bigint, bigint]): Promise<string[]> {
  const [flagged, twin] = ids;
  const held = stage.workload.shareFiles(ids);
  const areStored = async () => (await isStored(stage, flagged, held)) && (await isStored(stage, twin, held));
  if (!(await within(30_000, areStored))) return [`P6: ${flagged} and ${twin} have the same bytes and are not stored`];
  const [before] = await stage.cluster.query<{ id: string }>(`SELECT max(event_id) AS id FROM intake.events`);
  const { lift } = stage.workload.flagSome([flagged]);
  stage.count('quiet: flags on the bytes of two');
  const isRecalled = await untilUnreadable(stage, twin, held);
  const told = await find(stage, `intake.events WHERE application_id = $1 AND event_id > $2`, [twin, before?.id]);
  lift();
  const areBack = await within(60_000, areStored);
  return [
    ...(isRecalled ? [] : [`P8: the bytes of ${twin} are readable a minute after ${flagged} was flagged`]),
    ...(told > 0 ? [] : [`P26: ${twin} became infected because of ${flagged}, and no event says so`]),
    ...(areBack ? [] : [`P6: ${flagged} and ${twin} are not stored again after the flag was lifted`]),
  ];
}

const deleteMs = 8_000;

/** The flag is lifted while the store deletes. A file that is stored after that must have its object, even when the delete completes. */
async function playSlowDelete(stage: Stage, ids: readonly [bigint, bigint]): Promise<string[]> {
  const { s3, workload, count } = stage;
  const [flagged] = ids;
  const held = workload.shareFiles(ids);
  await within(30_000, () => isStored(stage, flagged, held));
  s3.fail('DeleteObject', { kind: 'slow', delayMs: deleteMs }, 1);
  const sinceAt = s3.requests.length;
  const { lift } = workload.flagSome([flagged]);
  const isDeleting = async () =>
    s3.requests
      .slice(sinceAt)
      .some(({ operation, status, target }) => operation === 'DeleteObject' && status === 0 && target.includes(held));
  await within(30_000, isDeleting);
  lift();
  count('quiet: flags lifted amid a delete');
  let bare = 0;
  const isOver = async () => {
    if (!(await isStored(stage, flagged, held))) return false;
    // The answer of the database may be older than the delete: it counts if it is the same after the look at the store.
    if (!hasObject(stage, held) && (await isStored(stage, flagged, held)) && !hasObject(stage, held)) bare += 1;
    return !(await isDeleting());
  };
  const isStoredAgain = await within(60_000, isOver);
  // The store may apply the delete late, so the check goes on for two seconds.
  for (let looks = 0; looks < 20; looks++, await sleep(100)) await isOver();
  s3.clearFaults();
  return [
    ...(isStoredAgain ? [] : [`P6: ${flagged} is not stored again after the flag was lifted amid a delete`]),
    ...(bare === 0 ? [] : [`P6: ${flagged} was called stored while a delete took its object`]),
  ];
}

/** Every worker dies right after its next put. The file is flagged before another worker fetches it again. */
async function playKilledPut(stage: Stage, id: bigint): Promise<string[]> {
  const { fleet, workload, count } = stage;
  for (let nth = 0; nth < fleet.size; nth++) fleet.kill(nth, { point: 'put', count: 1, stop: false });
  const kills = fleet.kills;
  const held = workload.shareFiles([id]);
  await within(60_000, async () => hasObject(stage, held) && fleet.kills > kills);
  const { lift } = workload.flagSome([id]);
  count('quiet: flags after a killed put');
  const isGone = await untilUnreadable(stage, id, held);
  lift();
  return isGone
    ? []
    : [`P8: the bytes of ${id} are readable a minute after they were flagged: the process that put them died`];
}

/** Waits until the flag is read; returns whether the object is gone within a minute after that. */
async function untilUnreadable(stage: Stage, id: bigint, sha256: string): Promise<boolean> {
  const isRead = async () =>
    (await find(stage, `intake.attachments WHERE application_id = $1 AND kind = 'resume' AND state = 'infected'`, [
      id,
    ])) > 0;
  await within(60_000, isRead);
  const untilAt = performance.now() + toRecallMs();
  for (; performance.now() < untilAt; await sleep(100)) {
    if (!hasObject(stage, sha256)) return true;
  }
  return false;
}

function hasObject({ s3 }: Stage, sha256: string): boolean {
  return [...s3.objects.keys()].some((key) => key.endsWith(sha256));
}

async function isStored(stage: Stage, id: bigint, sha256: string): Promise<boolean> {
  const where = `intake.attachments WHERE application_id = $1 AND kind = 'resume' AND state = 'stored' AND sha256 = $2`;
  return (await find(stage, where, [id, sha256])) > 0;
}

async function find({ cluster }: Stage, where: string, values: readonly unknown[]): Promise<number> {
  const texts = values.map((value) => (value === undefined ? null : String(value)));
  return (await cluster.query(`SELECT 1 FROM ${where}`, texts)).length;
}

/** Finds two applications whose resume is stored. */
async function findHeld({ cluster, workload }: Stage, { advertiserId }: BoardAdvertiser): Promise<bigint[]> {
  const rows = await cluster.query<{ application_id: string }>(
    `SELECT application_id FROM intake.attachments JOIN intake.applications USING (advertiser_id, application_id)
     WHERE advertiser_id = $1 AND kind = 'resume' AND state = 'stored' AND erased_at IS NULL ORDER BY 1 DESC LIMIT 50`,
    [advertiserId],
  );
  return rows
    .map((row) => BigInt(row.application_id))
    .filter((id) => workload.isFree(id))
    .slice(0, 2);
}
