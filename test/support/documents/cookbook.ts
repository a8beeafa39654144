// Parses and renders the cookbook: questions, their queries, and the tables of results below them.
// It knows the format of docs/analyse.md, but not the content of the queries.
import { readFileSync } from 'node:fs';
import pg from 'pg';

export interface Recipe {
  readonly number: number;
  readonly question: string;
  readonly sql: string;
}

/** A result as psql prints it: column names, and every value as text. */
export interface Result {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
}

export const cookbookFile = 'docs/analyse.md';

/** All recipes in the order of the page. */
export function loadRecipes(): Recipe[] {
  return [...loadPage().matchAll(recipePattern)].map(([, number, question, , sql]) => ({
    number: Number(number),
    question: question as string,
    sql: (sql as string).trim(),
  }));
}

/** Renders the page with these results below their queries. */
export function renderCookbook(results: ReadonlyMap<number, Result>): string {
  return loadPage().replace(recipePattern, (_, number: string, question, prose, sql) => {
    const result = results.get(Number(number));
    return `### ${number}. ${question}\n${prose}\`\`\`sql\n${sql}\`\`\`\n${result ? `\n${renderTable(result)}\n` : ''}`;
  });
}

/** Runs a query on a new connection and keeps every value as Postgres writes it. */
export async function runRecipe(url: string, sql: string): Promise<Result> {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: () => (text: string) => text } });
  await client.connect();
  try {
    const { fields, rows } = await client.query<(string | null)[]>({ text: sql, rowMode: 'array' });
    return { columns: fields.map(({ name }) => name), rows };
  } finally {
    await client.end();
  }
}

const recipePattern = /### (\d+)\. (.+)\n([\s\S]*?)```sql\n([\s\S]*?)```\n(?:\n\|[\s\S]*?\|\n(?!\|))?/g;

function loadPage(): string {
  return readFileSync(cookbookFile, 'utf8');
}

function renderTable({ columns, rows }: Result): string {
  const line = (cells: readonly (string | null)[]) => `| ${cells.map((cell) => cell ?? '(null)').join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}
