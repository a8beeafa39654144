// Scenarios that can be judged only without other faults: a file that always fails next to files that are served, a Retry-After that every
// worker must honour, and an account with nothing new. Played after everything is equal, in plans that contain the fault.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import { deadFiles } from './faults.ts';
import { playFlags } from './quiet-files.ts';
import { within, withSlack } from './settings.ts';
import type { Stage } from './stage.ts';

/** Plays the scenarios whose faults are in the plan; returns the findings. */
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

/** Makes every application older than SYNC_LAG, so that a new process gets only 404 from the list. `runCommand` checks its exit code. */
async function playNothingNew({ cluster, runCommand, count }: Stage): Promise<void> {
  await cluster.query(`UPDATE intake.applications SET first_seen_at = first_seen_at - interval '2 days'`);
  count('quiet: nothing new');
  // `doctor` requests the list as a poll does, and needs no lane. The workers hold the lanes almost all the time.
  await runCommand(['doctor']);
}

/** Nine attempts of four requests each are 36: the first does not count. */
const mostRequests = 100;

/** A file that always fails must be given up, however long its delays are. Another file is stored, and the account is not halted. */
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
    // Skips the retry delays, which are longer than the time between two polls.
    await cluster.query(
      `UPDATE intake.downloads d SET due_at = now() WHERE lease_token IS NULL AND due_at > now() AND (failed_at IS NULL
         OR failed_at < (SELECT c.as_of FROM intake.cursors c WHERE c.advertiser_id = d.advertiser_id))`,
    );
    const after = await loadStates(stage, account, [dead, neighbour]);
    return after[0]?.state === 'given_up' && after[1]?.state === 'stored' && after[1].sha256 !== before[1]?.sha256;
  };
  // The number of requests decides whether the retries are endless. The time limit only guards against a hang: with small pages it takes
  // half a minute until the change is seen, and each of the 36 requests may get a Retry-After of a second.
  const over = (await within(300_000, isOver)) && !isEndless();
  account.clearFaults(number);
  const [halted] = await cluster.query(`SELECT 1 FROM intake.advertisers WHERE state = 'halted'`);
  return [
    ...(over ? [] : [`P6, P11: a file that always fails (${fault.kind}) is not given up, or delays another file`]),
    ...(halted ? [`P11: a file that always fails (${fault.kind}) halts its account`] : []),
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

/** While several workers fetch files, one of them gets a Retry-After. The source must get no request of any worker until it is over. */
async function playRetryAfter({ cluster, requests, count }: Stage, account: BoardAdvertiser): Promise<string[]> {
  // Allows for requests that were sent before the worker could store the Retry-After.
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
  // The Retry-After counts from the answer that carried it.
  const early = requests().filter((one) => isOurs(one) && one.at > throttled.at + slackMs && one.at < untilAt - 50);
  if (early.length === 0) return [];
  return [`P14: ${early.length} requests came within the Retry-After of ${seconds} s that a worker had heard`];
}
