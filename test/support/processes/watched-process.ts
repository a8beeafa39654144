// A process under the watchdog: it prints a line at every iteration, or has a file in hand and stands still as the first argument says.

import { pbkdf2Sync } from 'node:crypto';
import { createWatchdog } from '../../../src/sync/worker/watchdog.ts';

const [still, loopMs] = process.argv.slice(2);
const watchdog = createWatchdog({ now: () => performance.now(), stuckMs: 600_000 });
watchdog.start({ exitCode: 8, loopMs: Number(loopMs) });
const heartbeat = watchdog.begin({ task: 'downloads' });
setInterval(() => process.stdout.write('alive\n'), 50);
setTimeout(() => {
  heartbeat.move({ task: 'downloads', advertiser: 'default', application: '100001', kind: 'resume' });
  if (still === 'loop') for (;;);
  if (still === 'pattern') /^(?:a+)+$/.test(`${'a'.repeat(60)}b`);
  if (still === 'native') pbkdf2Sync('', '', 2 ** 31 - 1, 64, 'sha512');
}, 500);
