// Advertisers: the accounts that are swept, by their configured name. The id is learned from the first answer and pinned;
// a halted advertiser rests until its cause is gone.
import { Trouble } from '../domain/trouble.ts';
import { type Queryable, sqlState } from './database.ts';

/** refused: the credential does not open the door, recovers by itself. mismatch: somebody else's data came, a person must look. */
export type HaltKind = 'refused' | 'mismatch';

export interface Advertiser {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly halt: { readonly kind: HaltKind; readonly reason: string } | null;
  readonly agentId: string | null;
}

interface AdvertiserRow extends Record<string, unknown> {
  name: string;
  advertiser_id: bigint | null;
  halt_kind: HaltKind | null;
  reason: string | null;
  agent_id: string | null;
}

/** The advertiser's row, made when it is first heard of. `configuredId` is pinned at once, or compared with what is pinned. */
export async function ensureAdvertiser(
  db: Queryable,
  name: string,
  configuredId: bigint | null,
  find: (name: string) => Promise<Advertiser | null> = (wanted) => findAdvertiser(db, wanted),
): Promise<Advertiser> {
  const advertiser = (await find(name)) ?? (await addAdvertiser(db, name, configuredId));
  if (configuredId === null || advertiser.advertiserId === configuredId) return advertiser;
  if (advertiser.advertiserId === null) return await pinAdvertiser(db, name, configuredId);
  throw new Trouble(
    'mismatch',
    `${name} is advertiser ${advertiser.advertiserId} in this database, but the configuration says ${configuredId}. Nothing was read. ` +
      'Correct ADVERTISER_ID, or give the other account a name of its own.',
  );
}

async function addAdvertiser(db: Queryable, name: string, configuredId: bigint | null): Promise<Advertiser> {
  await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, [
    name,
    configuredId,
  ]);
  return await loadAdvertiser(db, name);
}

/** Pins the id that the first answer showed. Once pinned it never changes. */
export async function pinAdvertiser(db: Queryable, name: string, advertiserId: bigint): Promise<Advertiser> {
  try {
    await db.query(`UPDATE intake.advertisers SET advertiser_id = $2 WHERE name = $1 AND advertiser_id IS NULL`, [
      name,
      advertiserId,
    ]);
  } catch (error) {
    if (sqlState(error) !== '23505') throw error;
    throw new Trouble(
      'mismatch',
      `${name} answers as advertiser ${advertiserId}, which is read under another name. Nothing was kept. ` +
        'To rename it: UPDATE intake.advertisers SET name, then change the configuration.',
    );
  }
  return await loadAdvertiser(db, name);
}

/** Stops an advertiser until its cause is gone. What is stored stays; its queue rests. */
export async function haltAdvertiser(db: Queryable, name: string, kind: HaltKind, reason: string): Promise<void> {
  await db.query(
    `UPDATE intake.advertisers SET state = 'halted', halt_kind = $2, reason = $3, halted_at = now()
     WHERE name = $1 AND (state = 'active' OR halt_kind = 'refused')`,
    [name, kind, reason],
  );
}

/** Ends a halt; of one kind only, where given. Returns whether there was one. */
export async function unhaltAdvertiser(db: Queryable, name: string, kind?: HaltKind): Promise<boolean> {
  const rows = await db.query(
    `UPDATE intake.advertisers SET state = 'active', halt_kind = NULL, reason = NULL, halted_at = NULL
     WHERE name = $1 AND state = 'halted' AND halt_kind = coalesce($2, halt_kind) RETURNING 1`,
    [name, kind ?? null],
  );
  return rows.length > 0;
}

/** Keeps the source's AgentID, whose meaning nobody describes; true when it differs from the one kept before. */
export async function noteAgent(db: Queryable, name: string, agentId: string | null): Promise<boolean> {
  const rows = await db.query<{ changed: boolean }>(
    `UPDATE intake.advertisers a SET agent_id = $2 FROM intake.advertisers old
     WHERE a.name = $1 AND old.name = $1 AND a.agent_id IS DISTINCT FROM $2
     RETURNING old.agent_id IS NOT NULL AS changed`,
    [name, agentId],
  );
  return rows[0]?.changed ?? false;
}

async function loadAdvertiser(db: Queryable, name: string): Promise<Advertiser> {
  const advertiser = await findAdvertiser(db, name);
  if (!advertiser) throw new Trouble('ours', `The row of advertiser ${name} vanished from intake.advertisers.`);
  return advertiser;
}

async function findAdvertiser(db: Queryable, name: string): Promise<Advertiser | null> {
  const [advertiser] = await findAdvertisers(db, [name]);
  return advertiser ?? null;
}

/** The advertisers of these names; null for a name that was never heard of. */
export async function findAdvertisers(db: Queryable, names: readonly string[]): Promise<(Advertiser | null)[]> {
  const rows = await db.query<AdvertiserRow>(
    `SELECT name, advertiser_id, halt_kind, reason, agent_id FROM intake.advertisers WHERE name = ANY ($1::text[])`,
    [names],
  );
  const found = new Map(rows.map((row) => [row.name, toAdvertiser(row)]));
  return names.map((name) => found.get(name) ?? null);
}

/** Every advertiser whose id is known, also those that no configuration names any more. */
export async function loadAdvertiserIds(db: Queryable): Promise<bigint[]> {
  const rows = await db.query<{ advertiser_id: bigint }>(
    `SELECT advertiser_id FROM intake.advertisers WHERE advertiser_id IS NOT NULL ORDER BY advertiser_id`,
  );
  return rows.map((row) => row.advertiser_id);
}

function toAdvertiser(row: AdvertiserRow): Advertiser {
  return {
    name: row.name,
    advertiserId: row.advertiser_id,
    halt: row.halt_kind ? { kind: row.halt_kind, reason: row.reason ?? '' } : null,
    agentId: row.agent_id,
  };
}
