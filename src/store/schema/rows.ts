// Row types for hand-written SQL, derived from the table definitions: values as the driver returns them.
// Types only: importing a table at run time would load drizzle, which takes 0.7 s.
import type { Table } from 'drizzle-orm';
import type * as applications from './applications.ts';
import type * as counts from './counts.ts';
import type * as files from './files.ts';
import type * as prefills from './prefills.ts';
import type * as privacy from './privacy.ts';
import type * as sweeps from './sweeps.ts';

type Modules = typeof applications & typeof counts & typeof files & typeof prefills & typeof privacy & typeof sweeps;
type AnyTable = Extract<Modules[keyof Modules], Table>;
type Rows = { [T in AnyTable as T['_']['name']]: T['$inferSelect'] };

/** A row with these columns of a table: `Columns<'blobs', 'sha256' | 'state'>`. */
export type Columns<Name extends keyof Rows, Names extends keyof Rows[Name]> = Pick<Rows[Name], Names>;

/** A row of a statement whose WHERE clause excludes nulls. */
export type NotNull<Row> = { [Name in keyof Row]: NonNullable<Row[Name]> };

/** A row of a table that the statement joins by LEFT JOIN. */
export type OrNull<Row> = { [Name in keyof Row]: Row[Name] | null };
