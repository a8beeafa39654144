// Compares the database's schema with the one that this version needs. Every command describes it in these words.

import { SchemaTrouble } from './trouble.ts';

export interface Schema {
  /** behind, absent: migrations of this version are missing. ahead: a newer version has migrated the database. */
  readonly state: 'current' | 'behind' | 'ahead' | 'absent';
  /** The version of Intake that last migrated the database; null where unknown. */
  readonly migratedBy: string | null;
}

/** The state and what to do about it, as the end of a sentence. */
export function describeSchema({ state, migratedBy }: Schema): string {
  switch (state) {
    case 'current':
      return 'current';
    case 'behind':
      return 'behind: run intake migrate';
    case 'absent':
      return 'absent: the worker will create it';
    case 'ahead':
      return `ahead: use ${migratedBy === null ? 'the version that migrated it' : `version ${migratedBy}`} or newer`;
  }
}

/** The error of a command that needs this version's schema and must not migrate. */
export function toSchemaTrouble(schema: Schema): SchemaTrouble {
  const { state, migratedBy } = schema;
  if (state === 'ahead') {
    return new SchemaTrouble(
      'The database was migrated by a newer version of Intake.',
      migratedBy === null
        ? 'Use the version that migrated it, or a newer one.'
        : `Use version ${migratedBy} of Intake or newer.`,
    );
  }
  return new SchemaTrouble(
    state === 'absent' ? 'The database has no schema of Intake yet.' : 'The schema is behind this version of Intake.',
    state === 'absent'
      ? 'Run `intake migrate`; worker, sync and backfill create it as well.'
      : 'Run `intake migrate`, or use the version that the workers run.',
  );
}

/**
 * The trouble of a database that is not in UTF8. LATIN1 cannot store every name. In SQL_ASCII, Postgres cannot normalize addresses, so that
 * the applications of a person could not be found for an erasure.
 */
export function toEncodingTrouble(encoding: string): SchemaTrouble | null {
  if (encoding === 'UTF8') return null;
  return new SchemaTrouble(
    `The encoding of the database is ${encoding}; Intake needs UTF8.`,
    "Create another database: CREATE DATABASE intake ENCODING 'UTF8' TEMPLATE template0.",
  );
}
