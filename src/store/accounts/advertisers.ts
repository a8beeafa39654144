// The accounts that are swept, by their configured name. The first answer shows an account's id, which is then pinned.
import { type Delay, Trouble, type Wait } from '../../domain/trouble.ts';
import { isAhead, isBefore, type Queryable, sqlState } from '../postgres/database.ts';
import type { Columns, NotNull } from '../schema/rows.ts';

/** `refused`: the source rejects the credential, and ends the halt by accepting it. `mismatch`: another's data; an operator resolves it. */
export type HaltKind = 'refused' | 'mismatch';

/** An account, as far as it is known. The first answer that names its id sets it here as well (answers.ts). */
export interface KnownAdvertiser {
  readonly name: string;
  advertiserId: bigint | null;
  readonly halt: { readonly kind: HaltKind; readonly reason: string } | null;
  agentId: string | null;
}

type Find = (name: string) => Promise<KnownAdvertiser | null>;

/** The advertiser's row, inserted at its first use. `configuredId` is pinned at once, or compared with the pinned id. */
export async function ensureAdvertiser(db: Queryable, name: string, configuredId: bigint | null, find: Find) {
  const found = await find(name);
  const isKnown = found !== null && (found.advertiserId !== null || configuredId === null);
  const advertiser = isKnown ? found : await pinAdvertiser(db, name, configuredId);
  requireConfigured(advertiser, configuredId);
  return advertiser;
}

/** Like `ensureAdvertiser`, but writes nothing. */
export async function lookUpAdvertiser(name: string, configuredId: bigint | null, find: Find) {
  const advertiser = (await find(name)) ?? { name, advertiserId: null, halt: null, agentId: null };
  requireConfigured(advertiser, configuredId);
  return { ...advertiser, advertiserId: advertiser.advertiserId ?? configuredId };
}

function requireConfigured({ name, advertiserId }: KnownAdvertiser, configuredId: bigint | null): void {
  if (advertiserId === null || configuredId === null || advertiserId === configuredId) return;
  throw new Trouble(
    'mismatch',
    `${name} is advertiser ${advertiserId} in this database, but the configuration says ${configuredId}. Nothing was read. ` +
      'Correct ADVERTISER_ID, or give the other account a name of its own.',
  );
}

/** The account's row, inserted at its first use. Pins the id, which the settings or the first answer name. A pinned id never changes. */
export async function pinAdvertiser(db: Queryable, name: string, advertiserId: bigint | null) {
  const writing = db.query<KnownAdvertiser>(
    `INSERT INTO intake.advertisers AS v (name, advertiser_id) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET advertiser_id = coalesce(v.advertiser_id, excluded.advertiser_id)
     RETURNING ${knownColumns}`,
    [name, advertiserId],
  );
  const [advertiser] = await writing.catch((error: unknown) => {
    if (sqlState(error) !== '23505') throw error;
    // An id belongs to one name.
    throw new Trouble(
      'mismatch',
      `${name} is advertiser ${advertiserId}, which is read under another name. Nothing was kept. ` +
        'To rename it: UPDATE intake.advertisers SET name, then change the configuration.',
    );
  });
  return advertiser as KnownAdvertiser;
}

/** Halts an advertiser until the cause is resolved. Stored data stays; its downloads pause. A mismatch is not overwritten. */
export async function haltAdvertiser(db: Queryable, name: string, kind: HaltKind, reason: string): Promise<void> {
  await db.query(
    `UPDATE intake.advertisers SET state = 'halted', halt_kind = $2, reason = $3, halted_at = now()
     WHERE name = $1 AND (state = 'active' OR halt_kind = 'refused')`,
    [name, kind, reason],
  );
}

/** Ends a halt, or only a halt of this kind. Returns whether there was one. */
export async function unhaltAdvertiser(db: Queryable, name: string, kind?: HaltKind): Promise<boolean> {
  const rows = await db.query(
    `UPDATE intake.advertisers SET state = 'active', halt_kind = NULL, reason = NULL, halted_at = NULL
     WHERE name = $1 AND state = 'halted' AND halt_kind = coalesce($2, halt_kind) RETURNING 1`,
    [name, kind ?? null],
  );
  return rows.length > 0;
}

/** Stores the source's AgentID, whose meaning is undocumented. */
export async function noteAgent(db: Queryable, name: string, agentId: string | null): Promise<void> {
  const sql = `UPDATE intake.advertisers SET agent_id = $2 WHERE name = $1 AND agent_id IS DISTINCT FROM $2`;
  await db.query(sql, [name, agentId]);
}

/** True while a Retry-After is in force. */
const isThrottled = isBefore('throttled_until', 'throttled_ms');

/** Keeps every worker from sending requests for the account until this time has passed. A longer wait that is in force stays. */
export async function noteRetryAfter(db: Queryable, name: string, retryAfterMs: Delay): Promise<void> {
  await db.query(
    `UPDATE intake.advertisers SET throttled_until = now() + $2::bigint * interval '1 millisecond', throttled_ms = $2::bigint
     WHERE name = $1 AND NOT coalesce(${isThrottled} AND throttled_until >= now() + $2::bigint * interval '1 millisecond', false)`,
    [name, retryAfterMs],
  );
}

/** How many milliseconds of a Retry-After are left for each of these accounts; 0 where none is in force. */
export async function loadRetryAfter(db: Queryable, names: readonly string[]): Promise<number[]> {
  const rows = await db.query<Columns<'advertisers', 'name'> & { left_ms: number }>(
    `SELECT name, extract(epoch FROM throttled_until - now())::float8 * 1000 AS left_ms FROM intake.advertisers
     WHERE name = ANY ($1::text[]) AND ${isThrottled}`,
    [names],
  );
  const left = new Map(rows.map((row) => [row.name, row.left_ms]));
  return names.map((name) => left.get(name) ?? 0);
}

/**
 * One request budget per source, shared by all workers: takes its next slot, and returns in how many milliseconds it begins. A row further
 * ahead than `mostAheadMs` is from before the clock was set back. The commit does not wait for the disk: a crash loses a slot of a second.
 */
export async function takeSlot(db: Queryable, source: string, slotMs: number, mostAheadMs: number): Promise<number> {
  const [slot] = await db.query<{ waitMs: number }>(
    `INSERT INTO intake.rate_limits AS p (source, next_at)
     SELECT $1, clock_timestamp() + $2::float8 * interval '1 millisecond' FROM set_config('synchronous_commit', 'off', true)
     ON CONFLICT (source) DO UPDATE
       SET next_at = $2::float8 * interval '1 millisecond' + CASE
         WHEN p.next_at BETWEEN clock_timestamp() AND clock_timestamp() + $3::float8 * interval '1 millisecond' THEN p.next_at
         ELSE clock_timestamp() END
     RETURNING extract(epoch FROM p.next_at - clock_timestamp())::float8 * 1000 - $2::float8 AS "waitMs"`,
    [source, slotMs, mostAheadMs],
  );
  return (slot as { waitMs: number }).waitMs;
}

/** Records the base URL at which the account's list has answered. */
export async function noteAnswered(db: Queryable, name: string, url: string): Promise<void> {
  const sql = `UPDATE intake.advertisers SET answered_url = $2 WHERE name = $1 AND answered_url IS DISTINCT FROM $2`;
  await db.query(sql, [name, url]);
}

export async function hasAnswered(db: Queryable, name: string, url: string): Promise<boolean> {
  const rows = await db.query(`SELECT 1 FROM intake.advertisers WHERE name = $1 AND answered_url = $2`, [name, url]);
  return rows.length > 0;
}

/** The columns of an advertiser `v`, as KnownAdvertiser. */
const knownColumns = `v.name, v.advertiser_id AS "advertiserId", v.agent_id AS "agentId",
  CASE WHEN v.halt_kind IS NOT NULL THEN json_build_object('kind', v.halt_kind, 'reason', coalesce(v.reason, '')) END AS halt`;

/** The advertisers with these names; null for an unknown name. */
export async function findAdvertisers(db: Queryable, names: readonly string[]): Promise<(KnownAdvertiser | null)[]> {
  const rows = await db.query<KnownAdvertiser>(
    `SELECT ${knownColumns} FROM intake.advertisers v WHERE v.name = ANY ($1::text[])`,
    [names],
  );
  return names.map((name) => rows.find((row) => row.name === name) ?? null);
}

/** Every advertiser whose id is known, also one that is no longer in the configuration. */
export async function loadAdvertiserIds(db: Queryable): Promise<bigint[]> {
  const rows = await db.query<NotNull<Columns<'advertisers', 'advertiser_id'>>>(
    `SELECT advertiser_id FROM intake.advertisers WHERE advertiser_id IS NOT NULL ORDER BY advertiser_id`,
  );
  return rows.map((row) => row.advertiser_id);
}

/** Trouble that is not noted again holds until its next try, and this much longer: a request to the source may take ten minutes. */
const graceMs = 600_000;

/** True for a trouble `t` that still holds. One that began in the future was written before the clock was set back. */
const holds = (t: string) =>
  `(${t} ->> 'until')::timestamptz > now() AND NOT ${isAhead(`(${t} ->> 'since')::timestamptz`)}`;

/** Notes on the rows of these accounts why their task waits, and that it is tried again after this time. A wait keeps its start while it lasts. */
export async function noteTrouble(
  db: Queryable,
  names: readonly string[],
  { task, dependency, reason }: Pick<Wait, 'task' | 'dependency' | 'reason'>,
  waitMs: number,
): Promise<void> {
  await db.query(
    `WITH noted AS (SELECT name, troubles -> $2 AS t FROM intake.advertisers WHERE name = ANY ($1::text[]) ORDER BY name FOR NO KEY UPDATE)
     UPDATE intake.advertisers v SET troubles = v.troubles || jsonb_build_object($2::text, jsonb_build_object(
       'dependency', $3::text,
       'reason', $4::text,
       'since', CASE WHEN t ->> 'dependency' = $3 AND ${holds('t')} THEN t -> 'since' ELSE to_jsonb(now()) END,
       'until', now() + $5::float8 * interval '1 millisecond'))
     FROM noted WHERE v.name = noted.name`,
    [names, task, dependency, reason, waitMs + graceMs],
  );
}

export async function clearTrouble(db: Queryable, names: readonly string[], task: Wait['task']): Promise<void> {
  await db.query(
    `WITH noted AS (SELECT name FROM intake.advertisers WHERE name = ANY ($1::text[]) AND troubles ? $2 ORDER BY name FOR NO KEY UPDATE)
     UPDATE intake.advertisers v SET troubles = v.troubles - $2::text FROM noted WHERE v.name = noted.name`,
    [names, task],
  );
}

export async function loadWaits(db: Queryable): Promise<Wait[]> {
  return await db.query<Wait>(
    `SELECT v.name AS advertiser, task, t ->> 'dependency' AS dependency, t ->> 'reason' AS reason, (t ->> 'since')::timestamptz AS since
     FROM intake.advertisers v CROSS JOIN jsonb_each(v.troubles) AS each (task, t)
     WHERE ${holds('t')} ORDER BY since, advertiser, task`,
  );
}
