// COPY: the way of new rows into their tables, several tables in one message. Knows its text format and how node-postgres takes a query
// of one's own; it knows no table.
import pg from 'pg';

/** Rows for one table: `into` names it with its columns, a line is a row's values in the same order. */
export interface Copy {
  readonly into: string;
  readonly size: number;
  readonly toLine: (at: number) => string;
}

type Value = string | number | bigint | boolean | null;

/** The columns to fill, each with the value that it takes from a row. */
export type ColumnValues<Row> = Readonly<Record<string, (row: Row) => Value>>;

/** These rows for that table. */
export function toCopy<Row>(table: string, rows: readonly Row[], columns: ColumnValues<Row>): Copy {
  const values = Object.values(columns);
  return {
    into: `${table} (${Object.keys(columns).join(', ')})`,
    size: rows.length,
    toLine: (at) => toLine(values, rows[at] as Row),
  };
}

const letters: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** Only a text can hold one of the letters that mean something to COPY. */
function toLine<Row>(values: readonly ((row: Row) => Value)[], row: Row): string {
  let line = '';
  for (let at = 0; at < values.length; at++) {
    const value = values[at]?.(row) ?? null;
    if (at > 0) line += '\t';
    if (value === null) line += '\\N';
    // Most texts have nothing to escape, and looking is cheaper than replacing.
    else if (typeof value === 'string' && /[\\\t\n\r]/.test(value)) line += toEscaped(value);
    else line += value;
  }
  return line;
}

function toEscaped(text: string): string {
  return text.replace(/[\\\t\n\r]/g, (letter) => letters[letter] ?? letter);
}

/** As much is sent before more lines are made: the server works on the first while the rest is still being written here. */
const chunkLength = 16 * 1024;

/**
 * Brings rows into their tables in the order given. Inside a transaction: one row that is refused, and none of them is there. Nothing is
 * waited for between the tables: the server reads on when it is ready, whatever this process is doing, and drops what follows a refusal.
 */
export async function copyInto(client: pg.ClientBase, copies: readonly Copy[]): Promise<void> {
  const filled = copies.filter(({ size }) => size > 0);
  if (filled.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    const query = new CopyQuery(filled, (error) => (error ? reject(query.unmade ?? error) : resolve()));
    client.query(query);
  });
}

/** The driver's own kind of query, so that it may stand between others that are sent without waiting. */
class CopyQuery extends pg.Query {
  readonly #copies: readonly Copy[];
  /** Why a line could not be made. */
  unmade: unknown = null;

  constructor(copies: readonly Copy[], callback: (error: Error | undefined) => void) {
    super('', callback);
    this.#copies = copies;
  }

  override submit = (plain: pg.Connection): void => {
    const connection = plain as CopyConnection;
    connection.query(this.#copies.map(({ into }) => `COPY ${into} FROM STDIN`).join(';'));
    try {
      for (const copy of this.#copies) send(connection, copy);
    } catch (error) {
      // The server waits for the rest; its answer to this ends the query.
      this.unmade = error;
      connection.sendCopyFail('a line could not be made');
    }
  };

  handleCopyInResponse(): void {}
}

function send(connection: CopyConnection, { size, toLine }: Copy): void {
  let text = '';
  for (let at = 0; at < size; at++) {
    text += `${toLine(at)}\n`;
    if (text.length < chunkLength && at < size - 1) continue;
    connection.sendCopyFromChunk(Buffer.from(text));
    text = '';
  }
  connection.endCopyFrom();
}

/** What node-postgres' connections can do and their types leave out. */
interface CopyConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}
