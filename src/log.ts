// The log: one line per event on stderr, with ids and counts, never a payload.

import pino, { type DestinationStream } from 'pino';
import { longestText, type SafeError, toSafeError } from './domain/safe-error.ts';

/** Every line has a text of its own: without one, pino would take over the message of its error, whatever that quotes. */
export type Log = Readonly<Record<'debug' | 'info' | 'warn' | 'error', (fields: object, text: string) => void>>;

/** Creates a log of the given level. `auto` is pretty on a terminal if pino-pretty is installed, and JSON otherwise. */
export async function createLog(
  { level, format }: { readonly level: string; readonly format: 'auto' | 'json' | 'pretty' },
  destination?: DestinationStream,
): Promise<Log> {
  const pretty = format === 'pretty' || (format === 'auto' && process.stderr.isTTY);
  const stream = destination ?? ((pretty && (await createPretty())) || pino.destination({ fd: 2, sync: true }));
  const log: Log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: toFlat },
      serializers: { err: (error) => error },
    },
    stream,
  );
  return log;
}

/** The fields of a line: scalars and errors only. An object may contain anything, so only its name is logged. */
function toFlat(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, name === 'err' ? toLogged(value) : toScalar(value)]),
  );
}

/** An error as a field. A Trouble is logged without its stack, which an outage would repeat for hours. */
function toLogged(thrown: unknown): SafeError {
  const safe = toSafeError(thrown);
  return safe.kind === undefined ? safe : withoutStack(safe);
}

/** A cause with neither kind nor code is a bug, so it keeps its stack. */
function withoutStack({ stack: _, cause, ...rest }: SafeError): SafeError {
  if (cause === undefined) return rest;
  return { ...rest, cause: (cause.kind ?? cause.code) ? withoutStack(cause) : cause };
}

function toScalar(value: unknown): unknown {
  if (value instanceof Error) return toLogged(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return value.slice(0, longestText);
  return typeof value === 'object' && value !== null ? '[left out]' : value;
}

async function createPretty(): Promise<DestinationStream | undefined> {
  const loaded = await import('pino-pretty').catch(() => undefined);
  return loaded?.default({ destination: 2, sync: true, ignore: 'pid,hostname' });
}
