// Reads a long answer batch by batch while it arrives. The socket pauses while the reader is behind, so that memory holds a few batches.
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import pg from 'pg';

/** A batch ends with the row that reaches one of these. */
export interface BatchSize {
  readonly rows: number;
  readonly bytes: number;
}

/** The longest timer. The driver's limit for a whole answer would count the time in which the reader is behind. */
const unlimitedMs = 2 ** 31 - 1;

/**
 * The batches of an answer, inside a transaction whose statements may take half a day from then on: a paused answer keeps its statement
 * running. A batch that the reader waits for comes within `limitMs`, or the connection ends; so it does where the reader stops early.
 */
export async function* readBatches<T extends object>(
  client: pg.Client,
  { sql, values, size, limitMs }: { sql: string; values: readonly unknown[]; size: BatchSize; limitMs: number },
): AsyncGenerator<readonly T[]> {
  await client.query(`SET LOCAL statement_timeout = '12h'`);
  const socket = client.connection.stream as Socket;
  let isOver = false;
  let batch: T[] = [];
  let begunAt = socket.bytesRead;
  let limit: NodeJS.Timeout | undefined;
  const batches = new Readable({
    objectMode: true,
    // One batch waits while the reader has another.
    highWaterMark: 1,
    read() {
      socket.resume();
      limit = setTimeout(() => batches.destroy(new Error('Query read timeout')), limitMs);
    },
    destroy(error, done) {
      clearTimeout(limit);
      if (!isOver) socket.destroy();
      done(error);
    },
  });
  const push = () => {
    clearTimeout(limit);
    if (!batches.push(batch)) socket.pause();
    batch = [];
    begunAt = socket.bytesRead;
  };
  const query = new pg.Query<T>({ text: sql, values: [...values] }, (error) => {
    isOver = true;
    clearTimeout(limit);
    if (error) batches.destroy(error);
    else {
      if (batch.length > 0) push();
      batches.push(null);
    }
    // The answer of the next statement does not wait for the reader.
    socket.resume();
  });
  query.on('row', (row, result) => {
    // The driver collects the rows for the callback.
    if (result) result.rows.length = 0;
    batch.push(row);
    if (batch.length >= size.rows || socket.bytesRead - begunAt >= size.bytes) push();
  });
  client.query(Object.assign(query, { query_timeout: unlimitedMs }));
  yield* batches;
}
