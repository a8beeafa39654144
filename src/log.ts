// The log: one line per event on stderr, with ids and counts, never a payload.
// This file removes from errors what may contain a payload (rows, parameters, headers, queries), for every caller.

import pino, { type DestinationStream, type LogFn, type Logger } from 'pino';

/** pino's logger. The fields of a child may be ids only, since pino does not pass them through its formatters. */
export type Log = Omit<Logger, 'child'> & { child(ids: Readonly<Record<string, string | number>>): Log };

/** Creates a log of the given level. `auto` is pretty on a terminal if pino-pretty is installed, and JSON otherwise. */
export async function createLog({ level, format }: LogOptions, destination?: DestinationStream): Promise<Log> {
  const pretty = format === 'pretty' || (format === 'auto' && process.stderr.isTTY);
  const stream = destination ?? ((pretty && (await createPretty())) || pino.destination({ fd: 2, sync: true }));
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: toFlat },
      serializers: { err: (error) => error },
      hooks: { logMethod: withOwnMessage },
    },
    stream,
  );
}

export interface LogOptions {
  readonly level: string;
  readonly format: 'auto' | 'json' | 'pretty';
}

/** The parts of an error that may be logged. */
export interface SafeError {
  readonly name: string;
  readonly kind?: string;
  readonly code?: string;
  readonly status?: number;
  readonly message: string;
  /** The frames only: the first line of a stack repeats the message. */
  readonly stack: string;
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

const longest = 300;

function toSafeMessage(error: Error): string {
  // Truncated first: the expressions below are quadratic in the worst case (measured: 100,000 letters took 48 s).
  return toOwnWords(error)
    .slice(0, 2_000)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/(\/\/[^\s?#]*)[?#]\S*/g, '$1')
    .replace(/[^\s"'<(]+@[^\s"'>)]+/g, '[address]')
    .slice(0, longest);
}

/** A message may contain lines that look like frames, so it is removed first. A frame ends with a line and a column number. */
function toFrames({ stack = '', message }: Error): string {
  const lines = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).split('\n');
  return lines
    .filter((line) => /^ {4}at .*:\d+:\d+\)?$/.test(line))
    .slice(0, 20)
    .join('\n');
}

/** The message without the values that it quotes. */
function toOwnWords(error: Error): string {
  // drizzle: "Failed query: insert ... params: ..."; the cause has the database's message.
  if ('query' in error && 'params' in error) return 'Failed query';
  // Postgres: `invalid input syntax for type bigint: "..."`. No colon precedes the quoted names of tables and columns.
  if ('severity' in error) return error.message.replace(/: ".*$/s, '');
  // JSON.parse: `Unexpected token 'x', "..." is not valid JSON`.
  if (error instanceof SyntaxError) return error.message.replace(/(?:token )?['"`].*['"`]/s, '[text]');
  return error.message;
}

/** The fields of a line: scalars and errors only. An object may contain anything, so only its name is logged. */
function toFlat(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, name === 'err' ? toLogged(value) : toScalar(value)]),
  );
}

/** An error as a field. A Trouble is logged without its stack, which an outage would repeat for hours. */
function toLogged(thrown: unknown): SafeError | LoggedTrouble {
  const safe = toSafeError(thrown);
  return safe.kind === undefined ? safe : withoutStack(safe);
}

type LoggedTrouble = Omit<SafeError, 'stack' | 'cause'> & { readonly cause?: SafeError | LoggedTrouble };

/** A cause with neither kind nor code is a bug, so it keeps its stack. */
function withoutStack({ stack: _, cause, ...rest }: SafeError): LoggedTrouble {
  if (cause === undefined) return rest;
  return { ...rest, cause: (cause.kind ?? cause.code) ? withoutStack(cause) : cause };
}

function toScalar(value: unknown): unknown {
  if (value instanceof Error) return toLogged(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return value.slice(0, longest);
  return typeof value === 'object' && value !== null ? '[left out]' : value;
}

/** For a call without a message, pino would log the error's own message; this passes the safe one instead. */
function withOwnMessage(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [first, ...rest] = args as [unknown, ...unknown[]];
  const fields = first instanceof Error ? { err: first } : first;
  const own = typeof fields === 'object' && fields !== null && 'err' in fields && rest.length === 0;
  method.apply(this, (own ? [fields, toSafeError(fields.err).message] : [fields, ...rest]) as Parameters<LogFn>);
}

async function createPretty(): Promise<DestinationStream | undefined> {
  try {
    const { default: pretty } = await import('pino-pretty');
    return pretty({ destination: 2, sync: true, ignore: 'pid,hostname' });
  } catch {
    return undefined;
  }
}
