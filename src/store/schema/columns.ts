// What all tables share: the schema, the column types and the helper for CHECK constraints.
import { type Column, type SQL, sql } from 'drizzle-orm';
import { bigint, customType, foreignKey, type PgColumn, pgSchema, timestamp } from 'drizzle-orm/pg-core';

export const intake = pgSchema('intake');

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
// `const` keeps each column name a literal type; rows.ts derives the row types from them.
export const id64 = <const Name extends string>(name: Name) => bigint(name, { mode: 'bigint' });
export const at = <const Name extends string>(name: Name) => timestamp(name, { withTimezone: true });

/** Builds the condition of a CHECK that allows only these values. */
export function isOneOf(column: Column, values: readonly string[]): SQL {
  return sql`${column} IN (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`;
}

/** A foreign key to the columns of the same names in another table. */
export function refersTo<Name extends string>(
  name: string,
  from: Readonly<Record<Name, PgColumn>>,
  to: Readonly<Record<Name, PgColumn>>,
  ...names: [Name, ...Name[]]
) {
  const pick = (table: Readonly<Record<Name, PgColumn>>) => names.map((one) => table[one]) as [PgColumn, ...PgColumn[]];
  return foreignKey({ name, columns: pick(from), foreignColumns: pick(to) });
}
