// `intake extract`: writes a snapshot of the analysts' views as Parquet files, with a manifest that carries the proof.

import { formatBytes, formatCount } from '../../domain/format.ts';
import { command, flag, option } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { createCrashPoint, loadCommandConfig } from '../open.ts';

export const extract = command({
  name: 'extract',
  summary: 'write a snapshot of the views as Parquet files, with the certificate and a manifest',
  examples: [
    ['intake extract --to s3://analytics/intake', 'all views that name nobody, whole'],
    ['intake extract --to file:/data/intake --since-last', 'write only what has changed since the last snapshot there'],
    ['intake extract --to file:/data/intake --views applications_anonymous,jobs', 'only these views'],
    ['intake extract --to s3://hr/intake --with-people', "also people's columns, in files of their own"],
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
    const needs = ['database', 'privacy', 'blobs', 'sync', 'extract'] as const;
    const config = await loadCommandConfig(env, { needs });
    const { parsePlace } = await import('../../config.ts');
    const { runExtract } = await import('../../app/extract.ts');
    const place = to === undefined ? config.extract.EXTRACT_URL : parsePlace(to);
    if (place === null) {
      throw new Misuse(
        to === undefined
          ? 'Name the target with --to, or set EXTRACT_URL.'
          : '--to must be file:PATH or s3://bucket/prefix.',
      );
    }
    const crashPoint = createCrashPoint(env.INTAKE_CRASH_AT);
    const progress = terminal.openProgress('rows');
    let rows = 0;
    const onRows = (view: string, more: number) => {
      rows += more;
      progress.update(rows, null, view);
    };
    const run = { place, views, sinceLast, withPeople, onRows, crashPoint, signal };
    const summary = await runExtract(config, run).finally(() => progress[Symbol.dispose]());
    const { manifest, written, deleted } = summary;
    const { files } = manifest;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const doubts = manifest.advertisers.filter(({ risk }) => risk === 'doubt');
    terminal.result({ ...manifest, written, deleted }, () =>
      [
        `Snapshot ${manifest.snapshot_id}: ${formatCount(files.length, 'file')}, ${formatBytes(bytes)}; ${written} written, ${files.length - written} of an earlier snapshot.`,
        ...manifest.advertisers.map(({ name, certificate, reason }) => `${name}: ${certificate} (${reason}).`),
        deleted > 0 && `Deleted: ${formatCount(deleted, 'object')} of expired snapshots.`,
      ]
        .filter((line) => line !== false)
        .join('\n'),
    );
    return doubts.length > 0 ? exitCodes.incomplete : exitCodes.done;
  },
});
