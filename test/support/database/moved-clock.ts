// Simulates a database whose clock was ahead and has been set back. A test cannot change the time of Postgres, so it moves every stored
// time ahead instead. Code that compares stored times with the clock sees the same difference.

/** Runs one statement. */
type Query = <Row extends Record<string, unknown>>(sql: string) => Promise<readonly Row[]>;

/** Moves every stored time of schema `intake` ahead, as if the clock had been set back by that much. */
export async function setClockBack(query: Query, ms: number): Promise<void> {
  const columns = await query<{ table_name: string; columns: string[] }>(
    `SELECT c.relname::text AS table_name, array_agg(a.attname::text) AS columns
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'intake'::regnamespace AND c.relkind = 'r' AND a.atttypid = 'timestamptz'::regtype
       AND a.attnum > 0 AND NOT a.attisdropped
       -- The source's own times, which no clock of ours gave.
       AND a.attname NOT IN ('submitted_at', 'uploaded_at', 'after_date')
     GROUP BY c.relname ORDER BY c.relname`,
  );
  for (const { table_name, columns: times } of columns) {
    const moved = times.map((time) => `${time} = ${time} + ${ms} * interval '1 millisecond'`);
    await query(`UPDATE intake.${table_name} SET ${moved.join(', ')}`);
  }
  const ahead = (time: string) => `to_jsonb((t ->> '${time}')::timestamptz + ${ms} * interval '1 millisecond')`;
  await query(
    `UPDATE intake.advertisers SET troubles = (SELECT jsonb_object_agg(task, t || jsonb_build_object('since', ${ahead('since')}, 'until', ${ahead('until')}))
       FROM jsonb_each(troubles) AS each (task, t)) WHERE troubles <> '{}'`,
  );
}
