// Writes new rows by COPY, several tables in one message: knows COPY's text format and how to pass node-postgres a query of one's own.
import pg from 'pg';

/** Rows for one table. `into` names the table and its columns; a line holds a row's values in the same order. */
export interface Copy {
  readonly into: string;
  readonly size: number;
  readonly toLine: (at: number) => string;
}

type Value = string | number | bigint | boolean | null;

/** The columns to fill, each with a function that gets its value from a row. */
export type ColumnValues<Row> = Readonly<Record<string, (row: Row) => Value>>;

export function toCopy<Row>(table: string, rows: readonly Row[], columns: ColumnValues<Row>): Copy {
  const values = Object.values(columns);
  return {
    into: `${table} (${Object.keys(columns).join(', ')})`,
    size: rows.length,
    toLine: (at) => toLine(values, rows[at] as Row),
  };
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function toLine<Row>(values: readonly ((row: Row) => Value)[], row: Row): string {
  let line = '';
  for (let at = 0; at < values.length; at++) {
    const value = values[at]?.(row) ?? null;
    if (at > 0) line += '\t';
    if (value === null) line += '\\N';
    // Only strings can contain characters to escape. Most contain none, and a test is cheaper than a replace.
    else if (typeof value === 'string' && /[\\\t\n\r]/.test(value))
      line += value.replace(/[\\\t\n\r]/g, (character) => escapes[character] ?? character);
    else line += value;
  }
  return line;
}

/** Lines are sent in chunks of this many characters, so that the server reads the first chunk while this process builds the next. */
const chunkLength = 16 * 1024;

/** Copies rows into their tables, in this order. Call it inside a transaction: after a rejected row, the server discards the rest. */
export async function copyInto(client: pg.ClientBase, copies: readonly Copy[]): Promise<void> {
  const filled = copies.filter(({ size }) => size > 0);
  if (filled.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    const query = new CopyQuery(filled, (error) => (error ? reject(query.lineError ?? error) : resolve()));
    client.query(query);
  });
}

/** A query of the driver's own class, so that the driver can pipeline it between other statements. */
class CopyQuery extends pg.Query {
  readonly #copies: readonly Copy[];
  lineError: unknown = null;

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
      // The server waits for more data; its answer to CopyFail ends the query.
      this.lineError = error;
      connection.sendCopyFail('a line could not be built');
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

/** Methods of node-postgres connections that are missing from its types. */
interface CopyConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}
