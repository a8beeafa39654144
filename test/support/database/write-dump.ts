// Writes the dump of a database of this release, from which the tests of later ones upgrade: docs/contributing.md, "A release". pg_dump takes
// a server of its own version or an older one.
//   DATABASE_URL=postgres://.../an-empty-database npx node test/support/database/write-dump.ts
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { version } from '../../../src/domain/schema.ts';
import { callIntake } from '../processes/intake.ts';
import { toEnvironment } from '../processes/syncing.ts';
import { openScratch } from '../stores/blob-stores.ts';
import { dumpedBoard } from './dump-database.ts';

const { DATABASE_URL: url = '' } = process.env;
await using board = await openSandbox(dumpedBoard);
await using scratch = await openScratch();
const env = toEnvironment({ url }, board, scratch.path);

async function run(...args: string[]): Promise<void> {
  const { code, stderr } = await callIntake(args, env);
  if (code !== 0) throw new Error(`intake ${args.join(' ')} ended with ${code}: ${stderr}`);
}

const [replaced, erased] = [...board.truth()].map(({ id }) => id);
if (replaced === undefined || erased === undefined) throw new Error('The board is empty.');
board.fault({ kind: 'poison', on: 'list', json: '{"ID": null}' });
await run('sync');
board.change(replaced, { attachments: [{ kind: 'resume', content: 'a newer resume', uploadedAt: dumpedBoard.now() }] });
await run('sync', '--recheck');
await run('erase', '--application', String(erased), '--yes');

const dumped = execFileSync('pg_dump', ['--inserts', '--no-owner', '--no-privileges', '--schema=intake*', url], {
  encoding: 'utf8',
  maxBuffer: 2 ** 28,
});
// Lines that begin with a backslash are for psql.
const sql = dumped.replaceAll(/^\\.*\n/gm, '');
writeFileSync(`test/support/database-${version}.sql.gz`, gzipSync(sql, { level: 9 }));
