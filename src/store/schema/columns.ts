// The parts that all tables share: the schema, their column types and their checks.
import { type Column, type SQL, sql } from 'drizzle-orm';
import { bigint, customType, pgSchema, timestamp } from 'drizzle-orm/pg-core';

export const intake = pgSchema('intake');

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
// The names stay literal types: rows.ts makes the types of rows from them.
export const id64 = <const Name extends string>(name: Name) => bigint(name, { mode: 'bigint' });
export const at = <const Name extends string>(name: Name) => timestamp(name, { withTimezone: true });

/** The condition of a CHECK. */
export function isOneOf(column: Column, values: readonly string[]): SQL {
  return sql`${column} IN (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`;
}
