// What all tables share: the schema, the column types, and the constraints that most tables have. A column's key is its SQL name.
import { type Column, getTableColumns, getTableName, sql } from 'drizzle-orm';
import {
  bigint,
  check,
  customType,
  foreignKey,
  type PgColumn,
  pgSchema,
  primaryKey,
  timestamp,
} from 'drizzle-orm/pg-core';

export const intake = pgSchema('intake');

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
export const id64 = () => bigint({ mode: 'bigint' });
export const at = () => timestamp({ withTimezone: true });

export function key(...columns: [PgColumn, ...PgColumn[]]) {
  return primaryKey({ name: `${getTableName(columns[0].table)}_pkey`, columns });
}

/** A CHECK for each of these columns that allows only the values of its type. */
export function oneOf(...columns: Column[]) {
  return columns.map((column) => {
    const enumValues = getTableColumns(column.table)[column.name]?.enumValues ?? [];
    const values = enumValues.map((value: string) => `'${value}'`).join(', ');
    return check(`${getTableName(column.table)}_${column.name}`, sql`${column} IN (${sql.raw(values)})`);
  });
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
