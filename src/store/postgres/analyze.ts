// What the planner must know before a first load: that an advertiser has many rows. A server collects that by itself, but not within the
// first minute, and until then every index that begins with the advertiser looks as good as the primary key.
import type { Queryable } from './database.ts';

export interface Statistics {
  /** Analyzes tables that this process has filled and nobody has analyzed yet. */
  ensure(): Promise<void>;
  /** Rows were brought. */
  note(rows: number): void;
}

/** Of fewer rows the server could learn that every advertiser has one. */
const enoughRows = 100;

/**
 * Keyed checks of a session are planned once, on the tables of that moment. Planned while they were nearly empty, each check of a foreign
 * key read all rows of its advertiser: 1,184 rows for every application of a first load of 1,500 in pages of 30, 20 since (measured).
 */
export function createStatistics(db: Queryable): Statistics {
  let brought = 0;
  let isAnalyzed = false;
  return {
    async ensure() {
      if (isAnalyzed || brought < enoughRows) return;
      const [unknown] = await db.query(
        `SELECT 1 FROM pg_class WHERE oid = 'intake.applications'::regclass AND reltuples <= 0`,
      );
      // Another session that holds one of them analyzes too, or is about to change it; nothing waits for either.
      if (unknown) await db.query('ANALYZE (SKIP_LOCKED) intake.applications, intake.attachments, intake.downloads');
      isAnalyzed = true;
    },
    note(rows) {
      brought += rows;
    },
  };
}
