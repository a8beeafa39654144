// The log: one line per fact on stderr, with ids and counts, never a payload.
// What an error may carry beyond its kind, code and place (rows, parameters, headers, queries) is left out here, for every caller.

import pino, { type DestinationStream, type Logger } from 'pino';

export type Log = Logger;

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
  const { kind, code, status } = thrown as { kind?: unknown; code?: unknown; status?: unknown };
  const first = thrown instanceof AggregateError ? thrown.errors[0] : undefined;
  const cause = thrown.cause ?? first;
  return {
    name: thrown.name,
    ...(typeof kind === 'string' && { kind }),
    ...(typeof code === 'string' && { code }),
    ...(typeof status === 'number' && { status }),
    message: toSafeMessage(thrown),
    stack: (thrown.stack ?? '')
      .split('\n')
      .filter((line) => /^ {4}at /.test(line))
      .join('\n'),
    ...(cause !== undefined && depth < 5 && { cause: toSafeError(cause, depth + 1) }),
  };
}

const longest = 300;

function toSafeMessage(error: Error): string {
  return toOwnWords(error)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/(\/\/[^\s?#]*)[?#]\S*/g, '$1')
    .replace(/[^\s"'<(]+@[^\s"'>)]+/g, '[address]')
    .slice(0, longest);
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
function toFlat(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, toScalar(value)]));
}

function toScalar(value: unknown): unknown {
  if (value instanceof Error) return toSafeError(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return value.slice(0, longest);
  return typeof value === 'object' && value !== null ? '[left out]' : value;
}

async function createPretty(): Promise<DestinationStream | undefined> {
  try {
    const { default: pretty } = await import('pino-pretty');
    return pretty({ destination: 2, sync: true, ignore: 'pid,hostname' });
  } catch {
    return undefined;
  }
}
