// What the tables are made of: the schema and the column types that all of them share.
import { bigint, customType, pgSchema, timestamp } from 'drizzle-orm/pg-core';

export const intake = pgSchema('intake');

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
export const id64 = (name: string) => bigint(name, { mode: 'bigint' });
export const at = (name: string) => timestamp(name, { withTimezone: true });
