// Reads and rewrites messages of the Postgres protocol (version 3), as far as the proxy needs it: where a message ends, and what its SQL
// or SQLSTATE is. This module does no I/O.

/** A message: its type (empty for the first message of a connection) and all its bytes, header included. */
export interface Message {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Splits a byte stream into messages. The first message of a frontend (`hasStartup`) has no type byte. */
export function createSplitter(hasStartup: boolean): (chunk: Buffer) => Message[] {
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = hasStartup;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: Message[] = [];
    for (;;) {
      const header = isFirst ? 0 : 1;
      if (rest.length < header + 4) return messages;
      const end = header + rest.readInt32BE(header);
      if (rest.length < end) return messages;
      messages.push({ type: isFirst ? '' : String.fromCharCode(rest[0] ?? 0), bytes: rest.subarray(0, end) });
      rest = rest.subarray(end);
      isFirst = false;
    }
  };
}

/** The settings of a startup message: user, database, application_name. */
export function readStartup({ bytes }: Message): Map<string, string> {
  const words = bytes.subarray(8).toString('utf8').split('\0');
  const settings = new Map<string, string>();
  for (let at = 0; at + 1 < words.length; at += 2) settings.set(words[at] ?? '', words[at + 1] ?? '');
  return settings;
}

/** The SQL of a Query or Parse message; null for any other message. */
export function readSql({ type, bytes }: Message): string | null {
  if (type === 'Q') return bytes.subarray(5, bytes.length - 1).toString('utf8');
  if (type !== 'P') return null;
  const from = bytes.indexOf(0, 5) + 1;
  return bytes.subarray(from, bytes.indexOf(0, from)).toString('utf8');
}

/** Builds a simple Query message. */
export function toQuery(sql: string): Message {
  return withSql({ type: 'Q', bytes: Buffer.from('Q\0\0\0\0\0', 'latin1') }, sql);
}

/** Replaces the SQL of a Query or Parse message. */
export function withSql({ type, bytes }: Message, sql: string): Message {
  const text = Buffer.from(`${sql}\0`);
  const from = type === 'Q' ? 5 : bytes.indexOf(0, 5) + 1;
  const body = Buffer.concat([bytes.subarray(5, from), text, bytes.subarray(bytes.indexOf(0, from) + 1)]);
  const head = Buffer.alloc(5);
  head.write(type, 0, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return { type, bytes: Buffer.concat([head, body]) };
}

/** Replaces the SQLSTATE `from` of a server error by `to`. Every code has five characters, so the length stays the same. */
export function withCode({ type, bytes }: Message, from: string, to: string): Message {
  const at = bytes.indexOf(`C${from}\0`, 5, 'latin1');
  if (at < 0) return { type, bytes };
  const changed = Buffer.from(bytes);
  changed.write(to, at + 1, 'latin1');
  return { type, bytes: changed };
}
