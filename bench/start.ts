// Measures the start time of a command against `node -e 0`: `intake --help`, and `intake status` on a database with a small account. The
// first run of each fills the compile cache and is not counted.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createBoard, createLocalSource } from './support/board.ts';
import { type Figure, interleave, report, type Size } from './support/figure.ts';
import { loadPages } from './support/loading.ts';
import { openPlace } from './support/place.ts';

const run = promisify(execFile);
const main = join(import.meta.dirname, '../src/cli/main.ts');

export async function* measure(size: Size): AsyncGenerator<Figure> {
  await using place = await openPlace();
  await using database = await place.openDatabase();
  const source = createLocalSource(createBoard(1_000));
  await loadPages(database.url, source, 1_000);
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATABASE_URL: database.url,
    SOURCE_URL: 'http://127.0.0.1:9',
    SOURCE_CREDENTIAL: 'none',
    PRIVACY_KEY: 'a privacy key for the benches',
  };
  const command = (...args: string[]) => {
    const once = () => run(process.execPath, args, { env, cwd: import.meta.dirname });
    return { once, metered: () => place.meter(once) };
  };
  const commands = { bare: command('-e', '0'), help: command(main, '--help'), status: command(main, 'status') };
  for (const { once } of Object.values(commands)) await once();
  const { bare, help, status } = await interleave(size.repeats * 5, {
    bare: commands.bare.metered,
    help: commands.help.metered,
    status: commands.status.metered,
  });
  const anchor = 'node -e 0';
  const note = (wallMs: number) => `${wallMs.toFixed(0)} ms against ${bare.wallMs.toFixed(0)} ms`;
  const row = { anchor, theirs: bare };
  yield {
    ...row,
    figure: 'start: intake --help',
    ratio: help.wallMs / bare.wallMs,
    goal: { atMost: 5 },
    ours: help,
    note: note(help.wallMs),
  };
  yield {
    ...row,
    figure: 'start: intake status',
    ratio: status.wallMs / bare.wallMs,
    goal: { atMost: 15 },
    ours: status,
    note: note(status.wallMs),
  };
}

if (import.meta.main) await report(measure);
