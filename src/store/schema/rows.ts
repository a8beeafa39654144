// Row types for hand-written SQL, derived from the table definitions: values as the driver returns them, under their SQL column names.
// Types only: importing a table at run time would load drizzle, which takes 0.7 s.
import type { Column, Table } from 'drizzle-orm';
import type * as applications from './applications.ts';
import type * as counts from './counts.ts';
import type * as extracts from './extracts.ts';
import type * as files from './files.ts';
import type * as prefills from './prefills.ts';
import type * as privacy from './privacy.ts';
import type * as screens from './screens.ts';
import type * as sweeps from './sweeps.ts';

type Modules = typeof applications &
  typeof counts &
  typeof extracts &
  typeof files &
  typeof prefills &
  typeof privacy &
  typeof screens &
  typeof sweeps;
type AnyTable = Extract<Modules[keyof Modules], Table>;
type ColumnOf<T extends Table> = T['_']['columns'][keyof T['_']['columns']];
type NullOf<C extends Column> = C['_']['notNull'] extends true ? never : null;

type Rows = { [T in AnyTable as T['_']['name']]: RowOf<T> };
type RowOf<T extends Table> = {
  [C in ColumnOf<T> as C['_']['name']]: Returned<C['_']['data']> | NullOf<C>;
};

/** The driver returns the elements of a bigint[] as strings. */
type Returned<Data> = Data extends bigint[] ? string[] : Data;

/** A row with these columns of a table: `Columns<'blobs', 'sha256' | 'state'>`. */
export type Columns<Name extends keyof Rows, Names extends keyof Rows[Name]> = Pick<Rows[Name], Names>;

/** A row of a statement whose WHERE clause excludes nulls. */
export type NotNull<Row> = { [Name in keyof Row]: NonNullable<Row[Name]> };

/** A row of a table that the statement joins by LEFT JOIN. */
export type OrNull<Row> = { [Name in keyof Row]: Row[Name] | null };

/** The values that COPY writes, by table and column. A NOT NULL column without a default is required. */
export type Copied = { [T in AnyTable as T['_']['name']]: CopiedOf<T> };
type CopiedOf<T extends Table> = {
  [C in ColumnOf<T> as IsRequired<C> extends true ? C['_']['name'] : never]: Written<C['_']['data']> | NullOf<C>;
} & {
  [C in ColumnOf<T> as IsRequired<C> extends true ? never : C['_']['name']]?: Written<C['_']['data']> | NullOf<C>;
};
type IsRequired<C extends Column> = C['_'] extends { notNull: true; hasDefault: false } ? true : false;

/** Times, JSON and bytes are written as strings. */
type Written<Data> = Data extends string | boolean ? Data : Data extends number | bigint ? number | bigint : string;
