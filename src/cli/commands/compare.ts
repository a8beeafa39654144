// `intake compare`: finds the applications in which a copy elsewhere differs from Intake. The copy's engine computes fingerprints of ranges
// of ids by a statement that this command prints; the command compares them and prints the next, narrower statement.

import { readFileSync } from 'node:fs';
import { type Engine, engines, renderFingerprintSql } from '../../domain/extract/fingerprint-sql.ts';
import {
  type CopyAnswer,
  type Difference,
  findDifferences,
  parseAnswer,
  type Step,
} from '../../domain/extract/fingerprints.ts';
import { formatCount } from '../../domain/format.ts';
import { command, option, preset } from '../command.ts';
import { exitCodes, Misuse, toFileMisuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

/** The most ranges of one statement. Where more differ, the first are narrowed down first. */
const mostAsked = 500;

export const compare = command({
  name: 'compare',
  summary: 'find the applications in which a copy elsewhere differs, by fingerprints of ranges of ids',
  examples: [
    ['intake compare --sql duckdb', 'print the statement that computes the fingerprints of a copy'],
    ['intake compare --with copy.csv', 'compare its result with Intake'],
    ['intake compare --with copy.csv --sql duckdb', 'the same, and print the statement for the ranges that differ'],
    ['intake compare --sql postgres --table ats.applications', 'a statement for a table in Postgres'],
    ['intake compare --json', "Intake's own fingerprints"],
  ],
  options: {
    sql: option('<engine>', `print the statement for the copy: ${engines.join(', ')}`, toEngine),
    with: option('<file>', "the copy's result: CSV with a header, JSON, or JSON lines"),
    table: preset('<name>', 'the table or file of the copy', 'applications_anonymous'),
  },
  after: 'At most three statements lead to the ids. Exits with 3 while the copy differs: docs/extract.md.',
  async run({ env, terminal }, { sql: engine = null, with: file, table }) {
    if (engine !== null && file === undefined) {
      const statement = renderFingerprintSql(engine, table, 1, []);
      terminal.result({ statement }, () => statement);
      return exitCodes.done;
    }
    const answer = file === undefined ? null : loadAnswer(file);
    const config = await loadCommandConfig(env, { needs: ['database', 'privacy'] });
    const { openStoreOf } = await import('../../app/database.ts');
    await using store = await openStoreOf(config, 'compare', { statementTimeoutMs: 1_800_000 });
    const own = await store.extracts.loadFingerprints(answer?.step ?? 1, answer?.asked ?? []);
    if (answer === null) {
      terminal.result({ fingerprints: own }, () =>
        own
          .map(
            ({ advertiserId, fromId, applications, fingerprint }) =>
              `${advertiserId} ${fromId} ${applications} ${fingerprint}`,
          )
          .join('\n'),
      );
      return exitCodes.done;
    }
    const differences = findDifferences(own, answer.ranges);
    const asked = differences.slice(0, mostAsked);
    const isNarrowed = differences.length > 0 && answer.step < 3;
    const statement =
      engine !== null && isNarrowed ? renderFingerprintSql(engine, table, (answer.step + 1) as Step, asked) : null;
    const lines = toLines(answer, differences);
    if (statement !== null) terminal.note(lines.join('\n'));
    terminal.result(toResult(answer, differences, statement), () => statement ?? lines.join('\n'));
    return differences.length === 0 ? exitCodes.done : exitCodes.incomplete;
  },
});

function toEngine(text: string): Engine {
  const engine = engines.find((one) => one === text);
  if (engine === undefined) throw new Misuse(`--sql must be one of ${engines.join(', ')}.`);
  return engine;
}

function loadAnswer(file: string): CopyAnswer {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw toFileMisuse(file, `it cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  const answer = parseAnswer(text);
  if (answer === null) throw toFileMisuse(file, 'it is not the result of a statement of intake compare --sql');
  return answer;
}

/** At the last step every range is one application. */
function toKinds(differences: readonly Difference[]) {
  const ids = (is: (one: Difference) => boolean) =>
    differences.filter(is).map(({ advertiserId, fromId }) => ({ advertiserId, applicationId: fromId }));
  return {
    missing: ids(({ copy }) => copy === 0n),
    extra: ids(({ intake }) => intake === 0n),
    changed: ids(({ intake, copy }) => intake > 0n && copy > 0n),
  };
}

function toResult({ step }: CopyAnswer, differences: readonly Difference[], statement: string | null) {
  const ranges = differences.map(({ advertiserId, fromId, width, intake, copy }) => {
    return { advertiserId, fromId, toId: fromId + width - 1n, intake, copy };
  });
  return { step, equal: differences.length === 0, ranges, ...toKinds(step === 3 ? differences : []), statement };
}

function toLines({ step }: CopyAnswer, differences: readonly Difference[]): string[] {
  if (differences.length === 0) {
    return [step === 1 ? 'The copy is complete: every fingerprint agrees.' : 'These ranges agree by now.'];
  }
  if (step === 3) {
    const { missing, extra, changed } = toKinds(differences);
    const list = (what: string, ids: typeof missing) =>
      ids.length === 0
        ? []
        : [
            `${what}: ${ids.map(({ advertiserId, applicationId }) => `${applicationId} (advertiser ${advertiserId})`).join(', ')}.`,
          ];
    return [...list('Not in the copy', missing), ...list('Not in Intake', extra), ...list('Different', changed)];
  }
  const more = differences.length > mostAsked ? ` The statement asks for the first ${mostAsked}.` : '';
  return [
    `The copy differs in ${formatCount(differences.length, 'range')} of ${step === 1 ? '65,536' : '256'} ids.${more}`,
    'Next: run the statement of intake compare --with FILE --sql ENGINE on the copy, and compare its result.',
  ];
}
