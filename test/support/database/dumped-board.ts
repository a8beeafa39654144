// The board whose applications are in the dumps of earlier releases (test/support/database-*.sql.gz). The same clock gives the same bytes.
export const dumpedBoard = { applications: 20, weeks: 5, now: () => Date.UTC(2026, 10, 17, 8) };
