// Whose a blob store is. The store has an identity object that names the database that owns it, and an epoch that rises whenever the
// ownership moves. The owner keeps the same text. A database with another text, or at another place than the text names, neither writes nor
// deletes there.

export interface StoreOwner {
  /** `RANDOM@PLACE`: a copy of the database has the same random id and another place. Before 1.0.0 there was no place. */
  readonly databaseId: string;
  readonly epoch: number;
}

export interface RecordedStore {
  readonly databaseId: string;
  /** The identity of the store that it owns, null before the first use of one; and that which a process of it is about to write. */
  readonly identity: string | null;
  readonly nextIdentity: string | null;
  readonly location: string | null;
}

/** The nonce is random: two copies of a database that take a store at once have the same id and epoch, and only one of them is the owner. */
export function renderIdentity({ databaseId, epoch }: StoreOwner, nonce: string): string {
  return JSON.stringify({ database: databaseId, epoch, claim: nonce });
}

/** The owner in an identity. Null where there is none, and for the text of earlier releases, which named no database. */
export function parseIdentity(identity: string | null): StoreOwner | null {
  if (identity === null || !identity.startsWith('{')) return null;
  try {
    const { database, epoch } = JSON.parse(identity) as Record<string, unknown>;
    const isOwner = typeof database === 'string' && Number.isSafeInteger(epoch);
    return isOwner ? { databaseId: database, epoch: Number(epoch) } : null;
  } catch {
    return null;
  }
}

/** The owner that takes a store with this identity next: its epoch is above all that the store and the database know. */
export function toNextOwner(recorded: RecordedStore, identity: string | null): StoreOwner {
  const known = [identity, recorded.identity].map((text) => parseIdentity(text)?.epoch ?? 0);
  return { databaseId: recorded.databaseId, epoch: Math.max(...known) + 1 };
}

/** Whether an id names this database; also an id without a place, as earlier checkouts wrote it. */
export const isOwnId = (databaseId: string, own: string) => databaseId === own || databaseId === toRandomId(own);

const toRandomId = (databaseId: string) => databaseId.replace(/@.*/, '');

/** Whether a store with this identity is the one that the database owns. True as well when neither of them has an identity yet. */
export function isOwnStore(recorded: RecordedStore | null, identity: string | null): boolean {
  const { identity: known = null, nextIdentity = null, databaseId = '' } = recorded ?? {};
  if (identity !== known && (identity === null || identity !== nextIdentity)) return false;
  const owner = parseIdentity(identity);
  return owner === null || isOwnId(owner.databaseId, databaseId);
}

/** Whether nothing is left to write: the identity names the database and its place, and is no plan. */
export function isConfirmed({ databaseId, nextIdentity }: RecordedStore, identity: string | null): boolean {
  return identity !== nextIdentity && parseIdentity(identity)?.databaseId === databaseId;
}

export function explainRefusal(location: string, recorded: RecordedStore | null, identity: string | null): string {
  const own = recorded?.location;
  if (isOwnStore(recorded, identity))
    return `${location} holds files and does not name the database that owns them. This database has no store yet.`;
  if (identity === null)
    return `${location} does not hold the files of this database: they are in ${own ?? 'another store'}.`;
  const owner = parseIdentity(identity);
  const mine = parseIdentity(recorded?.identity ?? null);
  if (owner !== null && owner.databaseId === recorded?.databaseId) {
    if (mine !== null && owner.epoch < mine.epoch)
      return `${location} is an older state of the store: it has epoch ${owner.epoch}, and this database ${mine.epoch}.`;
    const had = mine === null ? 'this copy never owned it' : `this copy has epoch ${mine.epoch}`;
    return `${location} was adopted by another copy of this database (${owner.databaseId}), with epoch ${owner.epoch}; ${had}.`;
  }
  if (owner !== null && recorded !== null && toRandomId(owner.databaseId) === toRandomId(recorded.databaseId))
    return `${location} belongs to the database ${owner.databaseId} (epoch ${owner.epoch}). This is the database ${recorded.databaseId}: one is a copy of the other. After a restore, a move or pg_upgrade, run intake adopt-store. A copy that runs beside the original needs a BLOBS_URL of its own.`;
  const whose = owner === null ? 'another database' : `the database ${owner.databaseId} (epoch ${owner.epoch})`;
  const id = recorded === null ? 'This database' : `This is the database ${recorded.databaseId}, which`;
  return `${location} belongs to ${whose}. ${id} has ${own ? `its files in ${own}` : 'no store yet'}.`;
}
