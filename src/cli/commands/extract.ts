// `intake extract`: writes a snapshot of the analysts' views as Parquet files, with a manifest that carries the proof. `intake compare`: finds
// the applications in which a copy elsewhere differs. The copy's engine computes fingerprints of ranges of ids by a statement that this
// command prints; the command compares them and prints the next, narrower statement.
import { readFileSync } from 'node:fs';
import {
  type CopyAnswer,
  type Difference,
  engines,
  findDifferences,
  parseAnswer,
  renderFingerprintSql,
  type Step,
} from '../../domain/extract/fingerprints.ts';
import { formatBytes, formatCount } from '../../domain/format.ts';
import { command, flag, option, preset, toWord } from '../command.ts';
import { exitCodes, Misuse, toFileMisuse } from '../failure.ts';
import { createCrashPoint, loadCommandConfig } from '../open.ts';

export const extract = command({
  name: 'extract',
  summary: 'write a snapshot of the views as Parquet files, with the certificate and a manifest',
  examples: [
    ['intake extract --to s3://analytics/intake', 'all views that name nobody, whole'],
    ['intake extract --to file:/data/intake --since-last', 'write only what has changed since the last snapshot there'],
  ],
  options: {
    to: option('<url>', 'where: file:PATH or s3://bucket/prefix; otherwise EXTRACT_URL'),
    views: option('<names>', 'only these views, separated by commas', (text) =>
      text.split(',').map((view) => view.trim()),
    ),
    sinceLast: flag('write only partitions that have changed, and refer to earlier files for the rest'),
    withPeople: flag('also the views with personal data; intake erase reaches them'),
  },
  after: 'Readers begin with latest.json at the target: docs/extract.md.',
  async run({ env, signal, terminal }, { to, views = null, sinceLast, withPeople }) {
    const config = await loadCommandConfig(env, ['database', 'privacy', 'blobs', 'sync', 'extract']);
    const { parsePlace } = await import('../../config.ts');
    const { runExtract } = await import('../../app/extract.ts');
    const place = to === undefined ? config.extract.EXTRACT_URL : parsePlace(to);
    if (place === null)
      throw new Misuse('Name the target with --to file:PATH or s3://bucket/prefix, or set EXTRACT_URL.');
    const progress = terminal.openProgress('rows');
    let rows = 0;
    const onRows = (view: string, more: number) => {
      rows += more;
      progress.update(rows, null, view);
    };
    const crashPoint = createCrashPoint(env.INTAKE_CRASH_AT);
    const run = { place, views, sinceLast, withPeople, onRows, crashPoint, signal };
    const { manifest, written, deleted } = await runExtract(config, run).finally(() => progress[Symbol.dispose]());
    const { advertisers, files } = manifest;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    terminal.result({ ...manifest, written, deleted }, () => [
      `Snapshot ${manifest.snapshot_id}: ${formatCount(files.length, 'file')}, ${formatBytes(bytes)}; ${written} written, ${files.length - written} of an earlier snapshot.`,
      ...advertisers.map(({ name, certificate, reason }) => `${name}: ${certificate} (${reason}).`),
      deleted > 0 && `Deleted: ${formatCount(deleted, 'object')} of expired snapshots.`,
    ]);
    return advertisers.some(({ risk }) => risk === 'doubt') ? exitCodes.incomplete : exitCodes.done;
  },
});

/** The most ranges of one statement. Where more differ, the first are narrowed down first. */
const mostAsked = 500;

export const compare = command({
  name: 'compare',
  summary: 'find the applications in which a copy elsewhere differs, by fingerprints of ranges of ids',
  examples: [
    ['intake compare --sql duckdb', 'print the statement that computes the fingerprints of a copy'],
    ['intake compare --with copy.csv --sql duckdb', 'compare its result, and print one for the ranges that differ'],
    ['intake compare --sql postgres --table ats.applications', 'a statement for a table in Postgres'],
  ],
  options: {
    sql: option('<engine>', `print the statement for the copy: ${engines.join(', ')}`, toWord(engines)),
    with: option('<file>', "the copy's result: CSV with a header"),
    table: preset('<name>', 'the table or file of the copy', 'applications_anonymous'),
  },
  after: 'At most three statements lead to the ids. Exits with 3 while the copy differs: docs/extract.md.',
  async run({ env, terminal }, { sql: engine = null, with: file, table }) {
    const toSql = (step: Step, asked: readonly Difference[]) =>
      engine && renderFingerprintSql(engine, table, step, asked);
    if (file === undefined) {
      const statement = toSql(1, []);
      if (statement === null) throw new Misuse('Print a statement with --sql, or compare its result with --with.');
      terminal.result({ statement }, () => statement);
      return exitCodes.done;
    }
    const answer = loadAnswer(file);
    const config = await loadCommandConfig(env, ['database', 'privacy']);
    const { openStoreOf } = await import('../../app/database.ts');
    await using store = await openStoreOf(config, 'compare', { statementTimeoutMs: 1_800_000 });
    const differences = findDifferences(
      await store.extracts.loadFingerprints(answer.step, answer.asked ?? []),
      answer.ranges,
    );
    const isNarrowed = differences.length > 0 && answer.step < 3;
    const statement = isNarrowed ? toSql((answer.step + 1) as Step, differences.slice(0, mostAsked)) : null;
    const result = toResult(answer.step, differences, statement);
    if (statement !== null) for (const line of toLines(result)) terminal.note(line);
    terminal.result(result, () => statement ?? toLines(result));
    return differences.length === 0 ? exitCodes.done : exitCodes.incomplete;
  },
});

function loadAnswer(file: string): CopyAnswer {
  let answer: CopyAnswer | null;
  try {
    answer = parseAnswer(readFileSync(file, 'utf8'));
  } catch (error) {
    throw toFileMisuse(file, error);
  }
  if (answer === null) throw toFileMisuse(file, 'it is not the result of a statement of intake compare --sql');
  return answer;
}

function toResult(step: Step, differences: readonly Difference[], statement: string | null) {
  // At the last step every range is one application.
  const ids = (is: (one: Difference) => boolean) =>
    differences
      .filter((one) => step === 3 && is(one))
      .map(({ advertiserId, fromId }) => ({ advertiserId, applicationId: fromId }));
  return {
    step,
    equal: differences.length === 0,
    ranges: differences.map(({ width, ...range }) => ({ ...range, toId: range.fromId + width - 1n })),
    missing: ids(({ copy }) => copy === 0n),
    extra: ids(({ intake }) => intake === 0n),
    changed: ids(({ intake, copy }) => intake > 0n && copy > 0n),
    statement,
  };
}

function toLines({ step, equal, ranges, missing, extra, changed }: ReturnType<typeof toResult>): string[] {
  if (equal) return [step === 1 ? 'The copy is complete: every fingerprint agrees.' : 'These ranges agree by now.'];
  if (step === 3) {
    const kinds = Object.entries({ 'Not in the copy': missing, 'Not in Intake': extra, Different: changed });
    return kinds.flatMap(([what, ids]) => {
      const named = ids.map(({ advertiserId, applicationId }) => `${applicationId} (advertiser ${advertiserId})`);
      return named.length === 0 ? [] : [`${what}: ${named.join(', ')}.`];
    });
  }
  const more = ranges.length > mostAsked ? ` The statement asks for the first ${mostAsked}.` : '';
  return [
    `The copy differs in ${formatCount(ranges.length, 'range')} of ${step === 1 ? '65,536' : '256'} ids.${more}`,
    'Next: run the statement of intake compare --with FILE --sql ENGINE on the copy, and compare its result.',
  ];
}
