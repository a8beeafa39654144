// What all tables share: the schema, the column types, and the constraints that most tables have. A column's key is its SQL name.
import { type BuildExtraConfigColumns, getTableColumns, getTableName, is, sql, Table } from 'drizzle-orm';
import {
  bigint,
  check,
  customType,
  foreignKey,
  getTableConfig,
  type PgColumn,
  type PgColumnBuilderBase,
  type PgTable,
  type PgTableExtraConfigValue,
  pgSchema,
  primaryKey,
  timestamp,
} from 'drizzle-orm/pg-core';

export const intake = pgSchema('intake');

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
export const id64 = () => bigint({ mode: 'bigint' });
export const at = () => timestamp({ withTimezone: true });

type Columns = Record<string, PgColumnBuilderBase>;
type More<Name extends string, Of extends Columns> = (
  t: BuildExtraConfigColumns<Name, Of, 'pg'>,
) => PgTableExtraConfigValue[];

/** A table. A column whose type lists its values has a CHECK that allows only these. */
export function table<Name extends string, Of extends Columns>(name: Name, columns: Of, more: More<Name, Of>) {
  return intake.table(name, columns, (t) => [...oneOf(t as never), ...more(t)]);
}

/**
 * A table of advertisers' data. Every key begins with advertiser_id, so that the tables can be distributed by it one day. Another table in
 * the key stands for its own key, and the rows refer to its rows.
 */
export function dataTable<Name extends string, Of extends Columns>(
  name: Name,
  parts: readonly (PgTable | (keyof Of & string))[],
  columns: Of,
  more: More<Name, Of & { advertiser_id: ReturnType<typeof advertiserId> }> = () => [],
) {
  return table(name, { advertiser_id: advertiserId(), ...columns }, (t) => {
    const own: Own = t as never;
    const names = parts.flatMap((part) => (is(part, Table) ? namesOf(keyOf(part)) : [part]));
    const references = parts.flatMap((part) => (is(part, Table) ? refersTo(own, part) : []));
    return [key(...pick(own, ['advertiser_id', ...names])), ...references, ...more(t)];
  });
}

const advertiserId = () => id64().notNull();

type Own = Readonly<Record<string, PgColumn>>;
type Some = [PgColumn, ...PgColumn[]];
const pick = (own: Own, names: readonly string[]) => [...new Set(names)].map((name) => own[name]) as Some;
const keyOf = (of: PgTable) => getTableConfig(of).primaryKeys[0]?.columns as Some;
const namesOf = (columns: Some) => columns.map(({ name }) => name);

export function key(...columns: Some) {
  return primaryKey({ name: `${getTableName(columns[0].table)}_pkey`, columns });
}

/** A foreign key to the key of another table, whose columns have the same names here. */
export function refersTo(own: Own, to: PgTable) {
  const foreignColumns = keyOf(to);
  const columns = pick(own, namesOf(foreignColumns));
  const name = getTableName(to);
  const parent = name.slice(name.lastIndexOf('_') + 1).replace(/s$/, '');
  return foreignKey({ name: `${getTableName(columns[0].table)}_${parent}`, columns, foreignColumns });
}

function oneOf(own: Own) {
  const [first] = Object.values(own);
  return Object.values(first ? getTableColumns(first.table) : {}).flatMap((column) => {
    const values = column.enumValues?.map((value) => `'${value}'`).join(', ');
    return values ? check(`${getTableName(column.table)}_${column.name}`, sql`${column} IN (${sql.raw(values)})`) : [];
  });
}
