import { expect } from 'vitest';
import { test } from '../support/test-database.ts';

test('a file has a database of its own', async ({ database }) => {
  const [row] = await database.query<{ name: string }>('SELECT current_database() AS name');
  expect(database.url).toContain(row?.name);
});
