// Removes from errors what may contain a payload (rows, parameters, headers, queries), for logs and reports.

export interface SafeError {
  readonly name: string;
  readonly kind?: string;
  readonly code?: string;
  readonly status?: number;
  readonly message: string;
  /** The frames only: the first line of a stack repeats the message. */
  readonly stack?: string;
  readonly cause?: SafeError;
}

/** The parts of a thrown value that contain no payload, including its chain of causes. */
export function toSafeError(thrown: unknown, depth = 0): SafeError {
  if (!(thrown instanceof Error))
    return { name: typeof thrown, message: 'a value that is not an Error was thrown', stack: '' };
  const { kind, code, status, statusCode = status }: Record<string, unknown> = { ...thrown };
  const first = thrown instanceof AggregateError ? thrown.errors[0] : undefined;
  const cause = thrown.cause ?? first;
  return {
    name: thrown.name,
    ...(typeof kind === 'string' && { kind }),
    ...(typeof code === 'string' && { code }),
    ...(typeof statusCode === 'number' && { status: statusCode }),
    message: toSafeMessage(thrown),
    stack: toFrames(thrown),
    ...(cause !== undefined && depth < 5 && { cause: toSafeError(cause, depth + 1) }),
  };
}

/** The longest text that a log line or a report takes over. */
export const longestText = 300;

function toSafeMessage(error: Error): string {
  // Truncated first: the expressions below are quadratic in the worst case (measured: 100,000 letters took 48 s).
  return toOwnWords(error)
    .slice(0, 2_000)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/(\/\/[^\s?#]*)[?#]\S*/g, '$1')
    .replace(/[^\s"'<(]+@[^\s"'>)]+/g, '[address]')
    .slice(0, longestText);
}

/** A message may contain lines that look like frames, so it is removed first. A frame ends with a line and a column number. */
function toFrames({ stack = '', message }: Error): string {
  const lines = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).split('\n');
  return lines
    .filter((line) => /^ {4}at .*:\d+:\d+\)?$/.test(line))
    .slice(0, 20)
    .join('\n');
}

function toOwnWords(error: Error): string {
  // drizzle: "Failed query: insert ... params: ..."; the cause has the database's message.
  if ('query' in error && 'params' in error) return 'Failed query';
  // Postgres: `invalid input syntax for type bigint: "..."`. No colon precedes the quoted names of tables and columns.
  if ('severity' in error) return error.message.replace(/: ".*$/s, '');
  // JSON.parse: `Unexpected token 'x', "..." is not valid JSON`.
  if (error instanceof SyntaxError) return error.message.replace(/(?:token )?['"`].*['"`]/s, '[text]');
  return error.message;
}
