// Gives the planner statistics early in a first load: it must know that an advertiser has many rows. Autovacuum collects them too, but not
// within the first minute. Until then, every index that begins with advertiser_id looks as good as the primary key.
import type { Queryable } from './database.ts';

/** With fewer rows, the statistics could suggest that every advertiser has one row. */
const enoughRows = 100;

/**
 * A session plans its foreign key checks once, with the statistics of that moment. Planned while the tables were nearly empty, each check
 * read all rows of its advertiser. Measured in a first load of 1,500 applications in pages of 30: 1,184 rows read for each application
 * without ANALYZE, 20 with it.
 */
export function createStatistics(db: Queryable) {
  let inserted = 0;
  let isAnalyzed = false;
  return {
    /** Analyzes the tables once this process has inserted enough rows, unless they were analyzed before. */
    async ensure() {
      if (isAnalyzed || inserted < enoughRows) return;
      const [unknown] = await db.query(
        `SELECT 1 FROM pg_class WHERE oid = 'intake.applications'::regclass AND reltuples <= 0`,
      );
      // SKIP_LOCKED: a session that locks one of the tables is analyzing or altering it, and this one must not wait for that.
      if (unknown) await db.query('ANALYZE (SKIP_LOCKED) intake.applications, intake.attachments, intake.downloads');
      isAnalyzed = true;
    },
    note(rows: number) {
      inserted += rows;
    },
  };
}
