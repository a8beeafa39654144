// The CLI as a person and a script meet it: help, mistakes, errors, exit codes, output.

import { describe, expect, it } from 'vitest';
import { command, type Definition, flag } from '../../src/cli/command.ts';
import { commands } from '../../src/cli/commands.ts';
import { exitCodes, Failure, Interrupted } from '../../src/cli/failure.ts';
import { runCli } from '../../src/cli/run.ts';
import { createProgress, toPrintable } from '../../src/cli/terminal.ts';
import { loadConfig } from '../../src/config.ts';
import { Trouble, type TroubleKind } from '../../src/domain/trouble.ts';

function createOutput(isTTY = false) {
  const written: string[] = [];
  return { write: (text: string) => written.push(text), isTTY, columns: 100, text: () => written.join('') };
}

type Run = Definition<{ readonly recheck: boolean }>['run'];

function sync(run: Run) {
  return command({
    name: 'sync',
    summary: 'one complete sync',
    examples: [['intake sync --recheck', 'reads everything again']],
    args: { '[name]': 'an account' },
    options: { recheck: flag('read everything again') },
    run,
  });
}

async function cli(
  argv: string[],
  run: Run = async () => exitCodes.done,
  env = {},
  signal = new AbortController().signal,
) {
  const stdout = createOutput();
  const stderr = createOutput();
  const code = await runCli(argv, [sync(run)], { env, stdout, stderr, signal });
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

const failing = (error: unknown) => async () => {
  throw error;
};

describe('a command', () => {
  it('is given its options, its arguments and its exit code', async () => {
    const seen: unknown[] = [];
    const { code } = await cli(['sync', '--recheck', 'north'], async (_, options, ...args) => {
      seen.push(options, args);
      return exitCodes.incomplete;
    });
    expect(code).toBe(3);
    expect(seen).toEqual([{ json: false, recheck: true }, ['north']]);
  });

  it('prints its result as text, or as one JSON object with exact ids', async () => {
    const run: Run = async ({ terminal }) => {
      terminal.note('asking');
      terminal.event({ page: 1 });
      terminal.result({ id: 9_007_199_254_740_993n }, () => 'one application');
      return exitCodes.done;
    };
    expect(await cli(['sync'], run)).toEqual({ code: 0, stdout: 'one application\n', stderr: 'asking\n' });
    expect(await cli(['sync', '--json'], run)).toEqual({
      code: 0,
      stdout: '{"page":1}\n{"id":"9007199254740993"}\n',
      stderr: 'asking\n',
    });
  });
});

describe('help', () => {
  it('lists the commands on stdout and ends with 0; a command shows its options and examples', async () => {
    const all = await cli(['--help']);
    expect(all).toMatchObject({ code: 0, stderr: '' });
    expect(all.stdout).toMatch(/sync .*one complete sync/);
    for (const argv of [
      ['sync', '--help'],
      ['help', 'sync'],
      ['sync', '-h'],
    ]) {
      const { code, stdout } = await cli(argv);
      expect(code).toBe(0);
      expect(stdout).toContain('--recheck');
      expect(stdout).toContain('--json');
      expect(stdout).toContain('intake sync --recheck  reads everything again');
    }
  });

  it('names the default of an option that takes a value, and none of a flag that is off; every command has an example', async () => {
    for (const { name, examples } of commands) {
      const [stdout, stderr] = [createOutput(), createOutput()];
      await runCli([name, '--help'], commands, { env: {}, stdout, stderr, signal: new AbortController().signal });
      expect(stdout.text(), name).toContain('--json');
      expect(stdout.text(), name).not.toContain('default: false');
      if (name === 'sandbox') expect(stdout.text()).toContain('(default: 500)');
      expect(examples.map(([line]) => line)).toContainEqual(expect.stringMatching(`\\bintake ${name}\\b`));
    }
  });

  it('is shown on stderr when no command is given, which is a mistake', async () => {
    expect(await cli([])).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Usage: intake') });
  });

  it('prints the version', async () => {
    expect((await cli(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

const helpOf = (command: string) => `intake help ${command} shows its options and examples.`;

describe('a mistake in the command line', () => {
  it.each([
    [['snyc'], "Unknown command 'snyc' (Did you mean sync?)", 'intake --help lists the commands.'],
    [['help', 'snyc'], "Unknown command 'snyc' (Did you mean sync?)", 'intake --help lists the commands.'],
    [['sync', '--rechek'], "Unknown option '--rechek' (Did you mean --recheck?)", helpOf('sync')],
    [['sync', 'a', 'b'], 'Too many arguments', helpOf('sync')],
    [['export'], "Missing required argument 'application'.", helpOf('export')],
    [['backfill', '--from', '2026-02-30'], '--from must be a day', helpOf('backfill')],
    [['backfill', '--after-id', '9223372036854775808'], '--after-id must be a whole number up to', helpOf('backfill')],
    [['url', '1', 'photo'], 'The kind must be one of resume, coverLetter, selectionCriteria, screen.', helpOf('url')],
    [['sandbox', '--port', '70000'], '--port must be a whole number from 0 to 65535', helpOf('sandbox')],
  ])('%j ends with 2 and says what was meant, without a stack', async (argv, says, next) => {
    const [stdout, stderr] = [createOutput(), createOutput()];
    const { signal } = new AbortController();
    expect(await runCli(argv, commands, { env: {}, stdout, stderr, signal })).toBe(2);
    expect(stdout.text()).toBe('');
    expect(stderr.text()).toContain(says);
    expect(stderr.text()).toContain('Kept: Nothing was started or changed.');
    expect(stderr.text()).toContain(`Next: ${next}`);
    expect(stderr.text()).not.toMatch(/ {4}at /);
  });

  it('is one JSON object on stdout with --json', async () => {
    const { stdout } = await cli(['snyc', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ error: { exitCode: 2, happened: expect.stringContaining('snyc') } });
    expect(stdout.trim().split('\n')).toHaveLength(1);
  });
});

describe('an error', () => {
  it('says what happened, what was kept and what to do', async () => {
    const failure = new Failure(exitCodes.schema, 'The schema is older than this Intake.', 'Run intake migrate.', {
      kept: 'All rows.',
    });
    const { code, stderr, stdout } = await cli(['sync', '--json'], failing(failure));
    expect(code).toBe(7);
    expect(stderr).toBe('The schema is older than this Intake.\n  Kept: All rows.\n  Next: Run intake migrate.\n');
    expect(JSON.parse(stdout)).toEqual({
      error: { exitCode: 7, happened: failure.message, kept: 'All rows.', next: 'Run intake migrate.' },
    });
  });

  it('of the configuration ends with 2, one block, each problem also as JSON', async () => {
    const run: Run = async ({ env }) => {
      loadConfig(env, { needs: ['source'], stateDir: '/nowhere' });
      return exitCodes.done;
    };
    const { code, stderr, stdout } = await cli(['sync', '--json'], run, { SOURCE_RATE: '10' });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^The configuration has 3 problems:\n {2}SOURCE_RATE must be/);
    expect(stderr).not.toMatch(/ {4}at /);
    const { error } = JSON.parse(stdout);
    expect(error.problems.map(({ name }: { name: string }) => name)).toEqual([
      'SOURCE_RATE',
      'SOURCE_URL',
      'SOURCE_CREDENTIAL',
    ]);
  });

  it.each<[TroubleKind, number]>([
    ['unreachable', 5],
    ['throttled', 5],
    ['malformed', 5],
    ['local', 5],
    ['refused', 4],
    ['mismatch', 4],
    ['missing', 2],
  ])('of kind %s ends with %i and advice', async (kind, expected) => {
    const { code, stderr } = await cli(['sync'], failing(new Trouble(kind, 'It did not work.')));
    expect(code).toBe(expected);
    expect(stderr).toMatch(/^It did not work\.\n {2}Kept: \S.*\n {2}Next: \S.*\n$/);
  });

  it('nobody expected ends with 1 and a stack, without what it quotes of a person', async () => {
    const { code, stderr } = await cli(
      ['sync'],
      failing(new Error('no reply from jane@example.com', { cause: new TypeError('inner') })),
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Unexpected: no reply from \[address\]\n/);
    expect(stderr).toMatch(/\n {4}at /);
    expect(stderr).toContain('TypeError: inner');
    expect(stderr).not.toContain('jane');
  });

  it('after an interruption is the interruption, and ends with 5', async () => {
    const stop = new AbortController();
    stop.abort(new Interrupted('SIGINT'));
    const wrapped = new Trouble('unreachable', 'The request ended.', { cause: stop.signal.reason });
    for (const error of [stop.signal.reason, new DOMException('aborted', 'AbortError'), wrapped]) {
      const { code, stderr } = await cli(['sync'], failing(error), {}, stop.signal);
      expect(code).toBe(5);
      expect(stderr).toMatch(/^Interrupted by SIGINT\n/);
    }
    expect((await cli(['sync'], failing(new Trouble('refused', 'No.')), {}, stop.signal)).code).toBe(4);
  });
});

describe('output', () => {
  it('a name cannot steer the terminal', () => {
    expect(toPrintable("\u001b[2JO'Brien\r\n\u202egnp.\u0007 \u{1f600}")).toBe(
      "\ufffd[2JO'Brien\ufffd\ufffd\ufffdgnp.\ufffd \u{1f600}",
    );
  });

  it('progress is a line every few seconds and a last one where nobody watches', () => {
    const stderr = createOutput();
    let now = 0;
    {
      using progress = createProgress('applications', stderr, null, () => now);
      for (now = 0; now <= 11_000; now += 500) progress.update(now, null);
      progress.update(12_000, 12_000);
    }
    expect(stderr.text()).toBe(
      'applications 5000, 1000/s\napplications 10000, 1000/s\napplications 12000 of 12000, 1043/s\n',
    );
  });

  it('progress that repeats itself is shown once, and a rate of nothing not at all', () => {
    const stderr = createOutput();
    let now = 0;
    {
      using progress = createProgress('applications', stderr, null, () => now);
      for (now = 0; now <= 60_000; now += 5_000) progress.update(4, 4, now < 30_000 ? '2 requests' : '3 requests');
    }
    expect(stderr.text()).toBe('applications 4 of 4, 1/s, 2 requests\napplications 4 of 4, 3 requests\n');
  });

  it('progress is a bar with rate and remaining time where somebody watches, and no bar while the total is unknown', () => {
    const stderr = createOutput(true);
    let now = 0;
    {
      using progress = createProgress('applications', stderr, null, () => now);
      now = 2_000;
      progress.update(500, null);
      progress.update(500, 1_000);
      progress.update(1_000, 1_000);
    }
    expect(stderr.text()).toContain('applications 1000 of 1000, 500/s');
    expect(stderr.text()).toContain('█'.repeat(24));
    expect(stderr.text()).not.toMatch(/█ applications 500,/);
  });

  it('progress is NDJSON where a program listens, and nothing on stderr', () => {
    const stderr = createOutput(true);
    const events: object[] = [];
    {
      using progress = createProgress(
        'applications',
        stderr,
        (value) => events.push(value),
        () => 0,
      );
      progress.update(1, 2);
    }
    expect(events).toEqual([{ progress: { label: 'applications', done: 1, total: 2 } }]);
    expect(stderr.text()).toBe('');
  });
});
