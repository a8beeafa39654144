// Defines what a command is: a value with its help texts, its options, how their texts are parsed, and the function it runs.
// Command files import heavy modules inside `run`, so that `--help` stays quick.

import { Command, Option as CommanderOption } from 'commander';
import { attachmentKinds } from '../domain/application.ts';
import { lastPosition } from '../domain/coverage/position.ts';
import { type ExitCode, Misuse } from './failure.ts';
import type { Terminal } from './terminal.ts';

/** What every command gets. Commands use neither `process` nor streams directly. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by the first SIGINT or SIGTERM. A one-shot command throws its reason (exit 5); a worker shuts down (exit 0). */
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
}

/** `flag` is the name of the option, for the error. */
type Parse<T> = (text: string, flag: string) => T;

/** An option of a command; `run` gets a T for it. */
interface Option<T = unknown> {
  readonly about: string;
  /** `<id>`, or absent for a flag. */
  readonly value?: string;
  readonly parse?: Parse<T> | undefined;
  readonly initial?: T;
}

type Options = Readonly<Record<string, Option>>;
export type Given<O extends Options> = { readonly [N in keyof O]: O[N] extends Option<infer T> ? T : never };

export const flag = (about: string): Option<boolean> => ({ about, initial: false });
/** A flag `--no-..`: true without it. */
export const unless = (about: string): Option<boolean> => ({ about, initial: true });

export const option = <T = string>(value: string, about: string, parse?: Parse<T>): Option<NoInfer<T> | undefined> => {
  return { about, value, parse };
};

export const preset = <T = string>(value: string, about: string, initial: T, parse?: Parse<T>): Option<T> => {
  return { about, value, parse, initial };
};

export const advertiser = option('<name>', 'only this account, where several are configured');

/** A command of the CLI. An option is named by its flag in camelCase; every command also has `--json`. */
export interface Definition<G = never> {
  readonly name: string;
  readonly summary: string;
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** By name: `<id>`, or `[id]` where it may be left out. */
  readonly args?: Readonly<Record<string, string>>;
  readonly options?: Options;
  /** What the help says after the examples. */
  readonly after?: string;
  readonly run: (context: Context, options: G, ...args: string[]) => Promise<ExitCode>;
}

/** Gives `run` the types of the options. */
export function command<O extends Options>(
  definition: Omit<Definition<Given<O>>, 'options'> & { readonly options?: O },
): Definition {
  return definition;
}

export function createProgram(
  definitions: readonly Definition[],
  version: string,
  context: Context,
  finish: (code: ExitCode) => void,
): Command {
  const lastLine =
    '\nSettings come from the environment: docs/configuration.md. Results go to stdout, the rest to stderr.';
  const program = new Command('intake')
    .description('Brings every job application from the source into Postgres, and proves that none is missing.')
    .version(version)
    .addHelpText('after', lastLine);
  for (const { name, summary, examples, args = {}, options = {}, after, run } of definitions) {
    const built = new Command(name)
      .description(summary)
      .addHelpText('after', `\n${toExamples(examples)}${after === undefined ? '' : `\n\n${after}`}`)
      .action(async (...given: unknown[]) => {
        const [chosen, ...texts] = [given.at(-2), ...given.slice(0, -2)] as [never, ...string[]];
        finish(await run(context, chosen, ...texts));
      });
    for (const [argument, about] of Object.entries(args)) built.argument(argument, about);
    for (const [key, one] of Object.entries<Option>({ json: flag('print JSON'), ...options })) {
      built.addOption(toOption(key, one));
      // Not as the default of the option, which the help would show.
      if (one.value === undefined) built.setOptionValue(key, one.initial);
    }
    program.addCommand(built);
  }
  return program;
}

function toOption(name: string, { about, value, parse, initial }: Option): CommanderOption {
  const words = `--${initial === true ? 'no-' : ''}${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  if (value === undefined) return new CommanderOption(words, about);
  const built = new CommanderOption(`${words} ${value}`, about).default(initial);
  return parse ? built.argParser((text) => parse(text, words)) : built;
}

function toExamples(examples: Definition['examples']): string {
  const width = Math.max(...examples.map(([line]) => line.length));
  return ['Examples:', ...examples.map(([line, does]) => `  ${line.padEnd(width)}  ${does}`)].join('\n');
}

// Parsers of options and arguments. A wrong value throws Misuse before anything starts.

export function toId(text: string, what = 'An application id'): bigint {
  const id = /^\d{1,19}$/.test(text) ? BigInt(text) : null;
  if (id === null || id > lastPosition) throw new Misuse(`${what} must be a whole number up to ${lastPosition}.`);
  return id;
}

/** One of a few words, whatever their case. */
export const toWord =
  <const W extends string>(words: readonly W[]) =>
  (text: string, what: string): W => {
    const word = words.find((known) => known.toLowerCase() === text.toLowerCase());
    if (word === undefined) throw new Misuse(`${what} must be one of ${words.join(', ')}.`);
    return word;
  };

export const toKind = toWord(attachmentKinds);

export const toCount =
  (most = 999_999_999) =>
  (text: string, what: string): number => {
    if (/^\d{1,9}$/.test(text) && Number(text) <= most) return Number(text);
    throw new Misuse(`${what} must be a whole number from 0 to ${most}, not "${text.slice(0, 40)}".`);
  };

/** Parses a time. A day alone stands for its first or last second at +10:00, the source's standard time. */
export const toSeconds =
  (edge: 'start' | 'end') =>
  (text: string, what: string): bigint => {
    const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
    const hasZone = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text);
    const at = Date.parse(isDay ? `${text}T${edge === 'start' ? '00:00:00' : '23:59:59'}+10:00` : text);
    // Date.parse turns 30 February into a day of March.
    const day = text.slice(0, 10);
    const isOnCalendar = new Date(Date.parse(day) || 0).toISOString().startsWith(day);
    if (Number.isNaN(at) || !isOnCalendar || !(isDay || hasZone)) {
      throw new Misuse(`${what} must be a day (2026-07-01) or a time with its zone (2026-07-01T09:00:00+10:00).`);
    }
    return BigInt(Math.floor(at / 1_000));
  };
