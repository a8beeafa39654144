// Any command line in any environment ends with one of the nine exit codes, and never with a stack that a person would have to read.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { runCli } from '../../src/cli/run.ts';
import { settings } from '../../src/config/settings.ts';

/** `demo` and `sandbox` start servers of their own; `grants`, `healthcheck` and all others are tried. */
const definitions = commands.filter(({ name }) => !['demo', 'sandbox'].includes(name));

const choose = (texts: string) => fc.constantFrom(...texts.split(' '));
const word = fc.oneof(
  choose('--json --help -h --version -- -x --advertiser --from --to --after-id --gaps'),
  choose('--sample --full --check --state --application --kind help 1 -1 2026-07-01 %'),
  fc.string({ unit: 'binary', maxLength: 12 }),
);
const line = fc.tuple(
  fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...definitions.map(({ name }) => name)) }, word),
  fc.array(word, { maxLength: 4 }),
);

/** In production, where nothing is started on its own, with a database that nobody serves; the rest as it may come. */
const environment = fc
  .dictionary(
    fc.constantFrom(...settings.keys(), 'SOURCE_URI', 'SOURCE_CREDENTIAL_FILE', 'LOG_LEVEL'),
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      choose('15m 10/s off http://127.0.0.1:1 file:/nonexistent/x s3://b/p -1 /etc/passwd'),
      fc.constant('*/5 * * * *'),
    ),
    { maxKeys: 12 },
  )
  .map((drawn) => ({
    ...drawn,
    NODE_ENV: 'production',
    LOG_LEVEL: drawn.LOG_LEVEL === 'debug' ? 'info' : drawn.LOG_LEVEL,
  }));
const sound = fc.constant({
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://intake:secret-in-url@127.0.0.1:1/intake',
  SOURCE_URL: 'http://127.0.0.1:1',
  SOURCE_CREDENTIAL: 'a-credential',
  BLOBS_URL: 'file:/nonexistent/blobs',
  PRIVACY_KEY: 'a privacy key for tests, long enough',
});

it('ends with an exit code from 0 to 8, whatever is typed and set', async () => {
  await fc.assert(
    fc.asyncProperty(line, fc.oneof(environment, sound), async ([first, rest], env) => {
      const written: string[] = [];
      const output = { write: (text: string) => written.push(text), isTTY: false, columns: 100 };
      // Commands that would wait for what is away are interrupted.
      const signal = AbortSignal.timeout(30);
      const code = await runCli([first, ...rest], definitions, { env, stdout: output, stderr: output, signal });
      const said = written.join('');
      expect([0, 2, 3, 4, 5, 6, 7, 8], said).toContain(code);
      expect(said).not.toMatch(/^\s+at .+:\d+:\d+\)?$/m);
      expect(said).not.toMatch(/secret-in-url|a-credential/);
    }),
    { numRuns: Number(process.env.HOSTILE_RUNS ?? 80) },
  );
});
