// Renders examples/dbt/sources.yml from the comments of the views, so that dbt's descriptions are the database's own.
// A test compares the file; `npm test -- test/integration/database/analytics.test.ts -u` writes it.
import type { TestDatabase } from '../database/test-database.ts';

export const dbtFile = 'examples/dbt/sources.yml';

/** The freshness rules of the views for which freshness makes sense. */
const freshness: Record<string, { field: string; warnHours: number; errorHours: number }> = {
  completeness: { field: 'polled_at', warnHours: 1, errorHours: 6 },
  applications_anonymous: { field: 'first_seen_at', warnHours: 48, errorHours: 168 },
};

interface Column {
  readonly view: string;
  readonly about: string;
  readonly column: string;
  readonly meaning: string;
  readonly type: string;
}

/** Renders the file for the views of this database. A JSON string is also a YAML string. */
export async function renderDbtSources(database: Pick<TestDatabase, 'query'>): Promise<string> {
  const columns = await database.query<Column>(
    `SELECT c.relname AS view, obj_description(c.oid) AS about, a.attname AS column, col_description(c.oid, a.attnum) AS meaning,
       format_type(a.atttypid, a.atttypmod) AS type
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
     WHERE c.relnamespace = 'intake_analytics'::regnamespace AND c.relkind = 'v' ORDER BY c.relname COLLATE "C", a.attnum`,
  );
  const views = [...Map.groupBy(columns, ({ view }) => view)].map(([view, members]) =>
    [
      `      - name: ${view}`,
      `        description: ${JSON.stringify(members[0]?.about)}`,
      ...renderFreshness(view),
      '        columns:',
      ...members.flatMap(({ column, meaning, type }) => [
        `          - name: ${column}`,
        `            description: ${JSON.stringify(meaning)}`,
        `            data_type: ${type}`,
      ]),
    ].join('\n'),
  );
  return `${head}${views.join('\n')}\n`;
}

const head = `# The views of Intake as dbt sources. Written by \`npm test -- test/integration/database/analytics.test.ts -u\` from the comments in the database.
version: 2
sources:
  - name: intake
    schema: intake_analytics
    tables:
`;

function renderFreshness(view: string): string[] {
  const rule = freshness[view];
  if (!rule) return [];
  return [
    `        loaded_at_field: ${rule.field}`,
    '        freshness:',
    `          warn_after: { count: ${rule.warnHours}, period: hour }`,
    `          error_after: { count: ${rule.errorHours}, period: hour }`,
  ];
}
