// One error for everything that can go wrong at an edge. Its kind says what may be done next; its message is for a person
// and never holds a payload, a credential or a fact about a person.

/**
 * unreachable: no usable answer, try again. throttled: the source names a time. refused: the credential is not accepted.
 * missing: it is not there (yet). malformed: an answer that cannot be read. mismatch: an answer that contradicts what we know.
 * local: our own disk, database or storage cannot take it.
 */
export type TroubleKind = 'unreachable' | 'throttled' | 'refused' | 'missing' | 'malformed' | 'mismatch' | 'local';

/** What Intake depends on, and waits for while it cannot be used. */
export type Dependency = 'source' | 'database' | 'storage';

export interface TroubleFacts {
  /** Where it was met, known to the edge that throws it. */
  readonly at?: Dependency;
  /** HTTP status, where there was one. */
  readonly status?: number;
  /** Milliseconds to wait, where the other side said so. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** What an edge throws. `kind` decides; the rest explains. */
export class Trouble extends Error {
  readonly kind: TroubleKind;
  readonly at: Dependency | undefined;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(kind: TroubleKind, message: string, facts: TroubleFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'Trouble';
    this.kind = kind;
    this.at = facts.at;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** A setting is wrong in a way that only its use could show; no waiting helps. */
export class SettingTrouble extends Trouble {
  constructor(message: string, cause?: unknown, at?: Dependency) {
    super('local', message, { cause, ...(at && { at }) });
    this.name = 'SettingTrouble';
  }
}

/** The certificate of the source or the storage is not believed. No waiting helps a command; a worker waits, since it may be renewed. */
export class CertificateTrouble extends Trouble {
  constructor(at: 'source' | 'storage', message: string) {
    super(at === 'source' ? 'unreachable' : 'local', message, { at });
    this.name = 'CertificateTrouble';
  }
}

/** The database's schema is not the one this version needs, or could not be brought to it. */
export class SchemaTrouble extends Trouble {
  /** What a person should do. */
  readonly next: string;

  constructor(message: string, next: string, cause?: unknown) {
    super('local', message, { cause, at: 'database' });
    this.name = 'SchemaTrouble';
    this.next = next;
  }
}

/** An id names different people at different advertisers, and nobody said which one is meant. */
export class SeveralFit extends Trouble {
  constructor(advertiserIds: readonly bigint[]) {
    super(
      'mismatch',
      `This id is held at ${advertiserIds.length} advertisers (${advertiserIds.join(', ')}), where it may name different people.`,
    );
    this.name = 'SeveralFit';
  }
}

/** The same lane of an advertiser is held by a living process. */
export class LaneHeld extends Trouble {
  constructor(message: string) {
    super('local', message);
    this.name = 'LaneHeld';
  }
}

/** Another process has taken over a lane: whatever this one holds in memory is stale and must be dropped. */
export class LeaseLost extends Trouble {
  constructor(name: string, lane: string) {
    super('local', `The ${lane} lane of ${name} was taken over by another process; nothing of this step was written.`);
    this.name = 'LeaseLost';
  }
}

/** The configured blob store is not the one that holds this database's blobs. */
export class WrongStore extends Trouble {
  constructor(message: string) {
    super('mismatch', message, { at: 'storage' });
    this.name = 'WrongStore';
  }
}
