// What can be judged only while nothing else goes wrong: a file that fails for ever beside others that are served, a Retry-After that
// every worker honours, and an account where nothing is new. Played after everything has become equal, in plans that have the fault.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import { deadFiles } from './faults.ts';
import { playFlags } from './quiet-files.ts';
import { withSlack } from './settings.ts';
import type { Stage } from './stage.ts';

/** Plays what the plan has of it; answers what is broken. */
export async function playQuietly(stage: Stage): Promise<string[]> {
  const has = (name: string) => stage.plan.schedule.some((fault) => fault.name === name);
  const [account] = stage.accounts;
  if (!account) return [];
  if (stage.plan.choices.empty === 'notFound') await playNothingNew(stage);
  return [
    ...(has('deadFile') ? await playDeadFile(stage, account) : []),
    ...(has('retryAfter') ? await playRetryAfter(stage, account) : []),
    ...(await playFlags(stage, account)),
  ];
}

/** Everything is older than the lag, so that a new process hears nothing but 404; its exit code is judged by `runCommand`. */
async function playNothingNew({ cluster, runCommand, count }: Stage): Promise<void> {
  await cluster.query(`UPDATE intake.applications SET first_seen_at = first_seen_at - interval '2 days'`);
  count('quiet: nothing new');
  // It asks the list as a poll does, and needs no lane, which the workers hardly ever leave.
  await runCommand(['doctor']);
}

/** Eight attempts of four requests each are 32. */
const mostRequests = 100;

/** A file that fails for ever ends with a reason, however long its waits are; its neighbour is stored, and the account goes on. */
async function playDeadFile(stage: Stage, account: BoardAdvertiser): Promise<string[]> {
  const { cluster, workload, plan, count, requests } = stage;
  const fault = deadFiles[plan.seed % deadFiles.length] ?? deadFiles[0];
  const held = await cluster.query<{ application_id: string }>(
    `SELECT application_id FROM intake.attachments JOIN intake.applications USING (advertiser_id, application_id)
     WHERE advertiser_id = $1 AND kind = 'resume' AND state = 'stored' AND erased_at IS NULL ORDER BY 1 LIMIT 2`,
    [account.advertiserId],
  );
  const [dead, neighbour] = held.map((row) => BigInt(row.application_id));
  if (dead === undefined || neighbour === undefined) return [];
  const number = account.fault({ ...fault, on: 'files', applicationId: dead, times: null });
  const before = await loadStates(stage, account, [dead, neighbour]);
  workload.changeFiles([dead, neighbour]);
  count('quiet: dead files');
  const sinceAt = Date.now();
  const isEndless = () =>
    requests().filter(({ at, path }) => at >= sinceAt && path.endsWith(`/resume/${dead}`)).length > mostRequests;
  const isOver = async () => {
    if (isEndless()) return true;
    // Its waits pass at once.
    await cluster.query(`UPDATE intake.downloads SET due_at = now() WHERE lease_token IS NULL AND due_at > now()`);
    const after = await loadStates(stage, account, [dead, neighbour]);
    return after[0]?.state === 'given_up' && after[1]?.state === 'stored' && after[1].sha256 !== before[1]?.sha256;
  };
  // Endless is what is asked too often. A source of small pages is read for half a minute before the change is seen, and each of the 32
  // requests may be told to wait for a second: the time guards against hanging alone.
  const over = (await within(300_000, isOver)) && !isEndless();
  account.clearFaults(number);
  const [halted] = await cluster.query(`SELECT 1 FROM intake.advertisers WHERE state = 'halted'`);
  return [
    ...(over ? [] : [`P6, P11: a file with ${fault.kind} for ever does not end, or keeps its neighbour waiting`]),
    ...(halted ? [`P11: a file with ${fault.kind} for ever halts its account`] : []),
  ];
}

async function loadStates({ cluster }: Stage, { advertiserId }: BoardAdvertiser, ids: readonly bigint[]) {
  const rows = await cluster.query<{ application_id: string; state: string; sha256: string | null }>(
    `SELECT application_id, state, sha256 FROM intake.attachments
     WHERE advertiser_id = $1 AND kind = 'resume' AND application_id = ANY ($2::bigint[])`,
    [advertiserId, ids.map(String)],
  );
  return ids.map((id) => rows.find((row) => row.application_id === String(id)));
}

/** While several workers fetch files, one hears a Retry-After: at the source, nobody asks before it is over. */
async function playRetryAfter({ cluster, requests, count }: Stage, account: BoardAdvertiser): Promise<string[]> {
  // What was on its way before the time could be written down.
  const slackMs = withSlack(1_500);
  const seconds = Math.ceil(3 + slackMs / 1_000);
  const slow = account.fault({ kind: 'slow', on: 'attachments', delayMs: 400, times: null });
  account.add(80);
  const isFetching = async () =>
    (await cluster.query(`SELECT 1 FROM intake.downloads WHERE lease_token IS NULL LIMIT 1`)).length > 0;
  await within(30_000, isFetching);
  const sinceAt = Date.now();
  account.fault({ kind: 'throttle', on: 'any', seconds, times: 1 });
  const isOurs = ({ advertiserId, at }: { advertiserId: bigint | null; at: number }) =>
    advertiserId === account.advertiserId && at >= sinceAt;
  const findThrottled = () => requests().find((one) => isOurs(one) && one.status === 429);
  await within(30_000, async () => findThrottled() !== undefined);
  const throttled = findThrottled();
  account.clearFaults(slow);
  if (throttled === undefined) return [];
  const untilAt = throttled.at + seconds * 1_000;
  await sleep(Math.max(0, untilAt - Date.now()));
  count('quiet: Retry-After');
  // The time counts from when it was heard.
  const early = requests().filter((one) => isOurs(one) && one.at > throttled.at + slackMs && one.at < untilAt - 50);
  if (early.length === 0) return [];
  return [`P14: ${early.length} requests came within the Retry-After of ${seconds} s that a worker had heard`];
}

async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const untilAt = performance.now() + withSlack(ms);
  while (performance.now() < untilAt) {
    if (await holds().catch(() => false)) return true;
    await sleep(200);
  }
  return false;
}
