// Defines what a command is: a value with its help texts, its options and the function it runs.
// Command files import heavy modules inside `run`, so that `--help` stays quick.

import { Command, Help, type Option } from 'commander';
import type { ExitCode } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** What every command gets. Commands use neither `process` nor streams directly. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by the first SIGINT or SIGTERM. A one-shot command throws its reason (exit 5); a worker shuts down (exit 0). */
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
}

/** A command of the CLI. `Options` are commander's: camelCase names of the flags declared in `shape`. */
export interface Definition<Options = Record<string, unknown>> {
  readonly name: string;
  readonly summary: string;
  /** Command lines to copy, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** Declares arguments and options; every command already has `--json`. */
  readonly shape?: (command: Command) => Command;
  readonly run: (context: Context, options: Options, ...args: string[]) => Promise<ExitCode>;
}

/** Types the options of a definition, so that commands.ts can list definitions of different options. */
export function command<Options = object>(definition: Definition<Options>): Definition<never> {
  return definition;
}

/** Builds the commander program from the definitions. The exit code of the command goes to `finish`. */
export function createProgram(
  definitions: readonly Definition<never>[],
  version: string,
  context: Context,
  finish: (code: ExitCode) => void,
): Command {
  const program = new Command('intake')
    .description('Brings every job application from the source into Postgres, and proves that none is missing.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .addHelpText(
      'after',
      '\nSettings come from the environment: docs/configuration.md. Results go to stdout, the rest to stderr.',
    );
  for (const definition of definitions) {
    const shaped = new Command(definition.name)
      .description(definition.summary)
      .option('--json', 'print JSON', false)
      .configureHelp({ optionDescription });
    (definition.shape?.(shaped) ?? shaped)
      .helpOption('-h, --help', 'print this help')
      .addHelpText('after', `\n${toExamples(definition.examples)}`)
      .action(async (...given: unknown[]) => {
        const [options, ...args] = [given.at(-2), ...given.slice(0, -2)] as [never, ...string[]];
        finish(await definition.run(context, options, ...args));
      });
    program.addCommand(shaped);
  }
  return program;
}

/** An option's description and default; a flag that defaults to false shows no default. */
function optionDescription(this: Help, option: Option): string {
  return option.defaultValue === false ? option.description : Help.prototype.optionDescription.call(this, option);
}

function toExamples(examples: Definition['examples']): string {
  const width = Math.max(...examples.map(([line]) => line.length));
  return ['Examples:', ...examples.map(([line, does]) => `  ${line.padEnd(width)}  ${does}`)].join('\n');
}
