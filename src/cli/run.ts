// Runs one command line from argv to exit code: parsing, signals, closed pipes, error reports.
// The process is an argument, so that a test can run the CLI as a function.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { CommanderError } from 'commander';
import { toJson } from '../domain/format.ts';
import { type SafeError, toSafeError } from '../domain/safe-error.ts';
import { version } from '../domain/schema.ts';
import { createProgram, type Definition } from './command.ts';
import { commands } from './commands.ts';
import { type ExitCode, exitCodes, Interrupted, Misuse, toFailure } from './failure.ts';
import { createTerminal, type Output } from './terminal.ts';

export async function runProcess(host: NodeJS.Process, definitions = commands): Promise<void> {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    host.on(name, () => {
      if (stop.signal.aborted) host.exit(exitCodes.temporary);
      if (host.stderr.isTTY) host.stderr.write('\nStopping. A second Ctrl-C stops at once.\n');
      stop.abort(new Interrupted(name));
    });
  }
  // A command that another process started with a channel ends with it.
  if (host.connected) host.once('disconnect', () => stop.abort(new Interrupted('the end of its parent')));
  // A reader that closes the pipe early (`| head`) is no error; the command stops, since nothing reads its output.
  host.stdout.on('error', (error: NodeJS.ErrnoException) => {
    stop.abort(error.code === 'EPIPE' ? new Interrupted('a closed pipe') : error);
  });
  host.stderr.on('error', () => {});
  const io: CliHost = { env: host.env, stdout: host.stdout, stderr: host.stderr, signal: stop.signal };
  host.on('uncaughtException', (error) => host.exit(reportFailure(error, io)));

  const argv = host.argv.slice(2);
  const unreadable = loadSettingsFile(host.env);
  const code = unreadable ? reportFailure(unreadable, io, argv) : await runCli(argv, definitions, io);
  host.exitCode = code;
  // A leaked handle must not keep a finished command alive.
  setTimeout(() => host.exit(code), 2_000).unref();
}

/** Loads settings from a `.env` in the working folder; variables that are already set take precedence. */
function loadSettingsFile(env: NodeJS.ProcessEnv): Misuse | null {
  try {
    for (const [name, value] of Object.entries(parseEnv(readFileSync('.env', 'utf8')))) env[name] ??= value;
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const next = 'Make it a file that this user may read, or remove it: settings can come from the environment alone.';
    return code === 'ENOENT' ? null : new Misuse(`The settings in ${resolve('.env')} cannot be read (${code}).`, next);
  }
}

export interface CliHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly signal: AbortSignal;
}

/** Runs one command line and returns its exit code; never throws. */
export async function runCli(
  argv: readonly string[],
  definitions: readonly Definition<never>[],
  host: CliHost,
): Promise<ExitCode> {
  const { env, stdout, stderr, signal } = host;
  const isCommand = (word: string | undefined) => definitions.some(({ name }) => name === word);
  let code: ExitCode = exitCodes.done;
  const finish = (ended: ExitCode) => {
    code = ended;
  };
  try {
    const terminal = createTerminal(stdout, stderr, argv.includes('--json'));
    const program = createProgram(definitions, version, { env, signal, terminal }, finish);
    for (const each of [program, ...program.commands]) {
      each.exitOverride().configureOutput({
        writeOut: (text) => void stdout.write(text),
        writeErr: () => {},
        getOutHelpWidth: () => stdout.columns ?? 100,
      });
    }
    if (argv.length === 0) {
      stderr.write(program.helpInformation());
      return exitCodes.usage;
    }
    // A misspelt name after `help` gets the same suggestion as a misspelt command.
    const isLost = argv[0] === 'help' && argv[1] !== undefined && argv[1] !== 'help' && !isCommand(argv[1]);
    await program.parseAsync(isLost ? argv.slice(1) : argv, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.done;
    return reportFailure(error instanceof CommanderError ? toMisuse(error) : error, host, argv, argv.find(isCommand));
  }
}

function reportFailure(
  error: unknown,
  { env, stdout, stderr, signal }: CliHost,
  argv: readonly string[] = [],
  command?: string,
): ExitCode {
  const failure = toFailure(error, signal);
  const { exitCode, message: happened, kept, details } = failure;
  const help = command ? `intake help ${command} shows its options and examples.` : 'intake --help lists the commands.';
  const next = failure.next || help;
  if (argv.includes('--json')) stdout.write(`${toJson({ error: { exitCode, happened, kept, next, ...details } })}\n`);
  stderr.write(`${happened}\n  Kept: ${kept}\n  Next: ${next}\n`);
  if (exitCode === exitCodes.unexpected || env.LOG_LEVEL === 'debug') {
    for (let seen: SafeError | undefined = toSafeError(failure.cause ?? failure); seen; seen = seen.cause) {
      stderr.write(`${seen.name}: ${seen.message}\n${seen.stack ?? ''}\n`);
    }
  }
  return exitCode;
}

function toMisuse({ message }: CommanderError): Misuse {
  const words = message.replace(/^error: /, '').replace(/\n/g, ' ');
  const sentence = words.charAt(0).toUpperCase() + words.slice(1);
  return new Misuse(/[.)]$/.test(sentence) ? sentence : `${sentence}.`);
}
