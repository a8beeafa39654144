// @module-tag slow
// One seed of the fault harness: real workers lose their database, their source and their store, and keep every promise.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

it('one seed of the fault harness breaks no promise', async () => {
  const args = [resolve('test/chaos/main.ts'), '--seed', '4', '--seconds', '8'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' });
});
