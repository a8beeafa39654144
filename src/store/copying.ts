// COPY: the way of new rows into their tables, several tables in one message. Knows its text format and how node-postgres takes a query
// of one's own; it knows no table.
import type pg from 'pg';

/** Rows for one table: `into` names it with its columns, a line is a row's values, each by `toCopyText`, with tabs between. */
export interface Copy {
  readonly into: string;
  readonly lines: readonly string[];
}

const letters: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** A row in the order of its columns; what is no text has none of the letters that mean something to COPY. */
export function toCopyLine(...values: readonly (string | number | bigint | boolean | null)[]): string {
  let line = '';
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
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

/**
 * Brings rows into their tables in the order given. Inside a transaction: one row that is refused, and none of them is there. Nothing is
 * waited for between the tables: the server reads on when it is ready, whatever this process is doing, and drops what follows a refusal.
 */
export async function copyInto(client: pg.ClientBase, copies: readonly Copy[]): Promise<void> {
  const filled = copies.filter(({ lines }) => lines.length > 0);
  if (filled.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    client.query({
      callback: (error?: Error | null) => (error ? reject(error) : resolve()),
      submit(plain: pg.Connection) {
        const connection = plain as CopyConnection;
        connection.stream.cork();
        connection.query(filled.map(({ into }) => `COPY ${into} FROM STDIN`).join(';'));
        for (const { lines } of filled) {
          connection.sendCopyFromChunk(Buffer.from(`${lines.join('\n')}\n`));
          connection.endCopyFrom();
        }
        connection.stream.uncork();
      },
      handleCopyInResponse: () => undefined,
      handleCommandComplete: () => undefined,
      handleError(error: Error) {
        this.callback(error);
      },
      handleReadyForQuery() {
        this.callback();
      },
    });
  });
}

/** What node-postgres' connections can do and their types leave out. */
interface CopyConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}
