// The version of Intake, and the database's schema compared with the one that it needs. Every command describes it in these words.

import manifest from '../../package.json' with { type: 'json' };
import { SchemaTrouble } from './trouble.ts';

/** It stands in package.json and nowhere else. */
export const { version } = manifest;

export interface Schema {
  /** behind, absent: migrations are missing. newer: a later version has expanded it. ahead: one has made it unusable for this one. */
  readonly state: 'current' | 'behind' | 'newer' | 'ahead' | 'absent';
  /** newer: the version that expanded it last. ahead: the lowest version that may use it. Null where unknown. */
  readonly version: string | null;
}

export interface AppliedMigration {
  readonly at: bigint;
  readonly version: string | null;
  /** The lowest version that may run since; null for one that only expands the schema. */
  readonly lowest: string | null;
}

type OwnMigration = Omit<AppliedMigration, 'version'>;

/** Compares what was applied with what this version brings and needs: all of its migrations but the breaking ones. */
export function toSchema(applied: readonly AppliedMigration[], own: readonly OwnMigration[]): Schema {
  if (applied.length === 0) return { state: 'absent', version: null };
  const excluding = findExcluding(applied);
  if (excluding !== null) return { state: 'ahead', version: excluding };
  const known = new Set(applied.map(({ at }) => at));
  if (own.some(({ at, lowest }) => lowest === null && !known.has(at))) return { state: 'behind', version: null };
  const newest = own.at(-1)?.at ?? 0n;
  const later = applied.filter(({ at }) => at > newest).at(-1);
  return later === undefined ? { state: 'current', version } : { state: 'newer', version: later.version };
}

/** The lowest version that may run, where a breaking migration excludes this one; else null. */
export function findExcluding(applied: readonly Pick<AppliedMigration, 'lowest'>[]): string | null {
  const needed = applied.flatMap(({ lowest }) => (lowest !== null && isOlder(version, lowest) ? lowest : []));
  return needed.sort((a, b) => (isOlder(a, b) ? 1 : -1))[0] ?? null;
}

/** Compares versions of the form MAJOR.MINOR.PATCH. A pre-release counts as its release. */
export function isOlder(version: string, than: string): boolean {
  const toRelease = (text: string) => text.replace(/[-+].*/, '');
  return toRelease(version).localeCompare(toRelease(than), 'en', { numeric: true }) < 0;
}

export const isUsable = ({ state }: Schema): boolean => state === 'current' || state === 'newer';

export function describeSchema({ state, version }: Schema): string {
  const later = version === null ? 'a later version' : `version ${version}`;
  return {
    current: 'current',
    behind: 'behind: run intake migrate',
    absent: 'absent: the worker will create it',
    newer: `newer: ${later} has expanded it, and this one goes on`,
    ahead: `ahead: use ${later} or newer`,
  }[state];
}

/** The error of a command that needs this version's schema and must not migrate. */
export function toSchemaTrouble({ state, version }: Schema): SchemaTrouble {
  if (state === 'ahead') {
    const what = 'The database was migrated by a newer version of Intake, and this one may no longer use it.';
    return new SchemaTrouble(what, `Use version ${version} of Intake or newer.`);
  }
  const what = state === 'absent' ? 'The database has no schema of Intake yet' : 'The schema is behind this version';
  const other = state === 'absent' ? '' : ', or use the version that the workers run';
  const next = `Run \`intake migrate\`, as worker, sync and backfill do when they start${other}.`;
  return new SchemaTrouble(`${what}.`, next);
}

/** LATIN1 cannot store every name. In SQL_ASCII, Postgres cannot normalize addresses, so that an erasure would not find a person. */
export function toEncodingTrouble(encoding: string): SchemaTrouble | null {
  if (encoding === 'UTF8') return null;
  return new SchemaTrouble(
    `The encoding of the database is ${encoding}; Intake needs UTF8.`,
    "Create another database: CREATE DATABASE intake ENCODING 'UTF8' TEMPLATE template0.",
  );
}
