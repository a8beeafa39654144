// The log: one line per fact on stderr, with ids and counts, never a payload.
// What an error may carry beyond its kind, code and place (rows, parameters, headers, queries) is left out here, for every caller.

import pino, { type DestinationStream, type LogFn, type Logger } from 'pino';

/** pino's logger, whose children carry ids alone: pino does not pass their fields through its formatters. */
export type Log = Omit<Logger, 'child'> & { child(ids: Readonly<Record<string, string | number>>): Log };

/** A log of the given level. `auto` is pretty on a terminal where pino-pretty is installed, and JSON elsewhere. */
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

/** What may be told of an error. */
export interface SafeError {
  readonly name: string;
  readonly kind?: string;
  readonly code?: string;
  readonly status?: number;
  readonly message: string;
  /** The frames alone: the first line of a stack repeats the message. */
  readonly stack: string;
  readonly cause?: SafeError;
}

/** The part of anything thrown that holds no payload, down its chain of causes. */
export function toSafeError(thrown: unknown, depth = 0): SafeError {
  if (!(thrown instanceof Error))
    return { name: typeof thrown, message: 'something that is no Error was thrown', stack: '' };
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
  // Cut before it is searched: the expressions below are quadratic in the worst case (measured: 100,000 letters took 48 s).
  return toOwnWords(error)
    .slice(0, 2_000)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/(\/\/[^\s?#]*)[?#]\S*/g, '$1')
    .replace(/[^\s"'<(]+@[^\s"'>)]+/g, '[address]')
    .slice(0, longest);
}

/** A message may hold lines that look like frames: it is taken away first, and a frame ends in a line and a column. */
function toFrames({ stack = '', message }: Error): string {
  const lines = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).split('\n');
  return lines
    .filter((line) => /^ {4}at .*:\d+:\d+\)?$/.test(line))
    .slice(0, 20)
    .join('\n');
}

/** Messages that quote what they were given, cut before the quotation. */
function toOwnWords(error: Error): string {
  // drizzle: "Failed query: insert ... params: ..."; the database's own words follow as the cause.
  if ('query' in error && 'params' in error) return 'Failed query';
  // Postgres: `invalid input syntax for type bigint: "..."`. Names of tables and columns are quoted without a colon before.
  if ('severity' in error) return error.message.replace(/: ".*$/s, '');
  // JSON.parse: `Unexpected token 'x', "..." is not valid JSON`.
  if (error instanceof SyntaxError) return error.message.replace(/(?:token )?['"`].*['"`]/s, '[text]');
  return error.message;
}

/** Fields of a line: scalars and errors only. An object may hold anything, so it is named and left out. */
function toFlat(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, name === 'err' ? toLogged(value) : toScalar(value)]),
  );
}

/** An error for a line. Trouble is ordinary: a refused connection needs no stack, which an outage would repeat for hours. */
function toLogged(thrown: unknown): SafeError | LoggedTrouble {
  const safe = toSafeError(thrown);
  return safe.kind === undefined ? safe : withoutStack(safe);
}

type LoggedTrouble = Omit<SafeError, 'stack' | 'cause'> & { readonly cause?: SafeError | LoggedTrouble };

/** What neither an edge nor the system named is a mistake of ours, wherever in the chain it stands: it keeps its stack. */
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

/** Where a call names no message of its own, pino would take the error's as it is. */
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
