// A user of the embedded Postgres in a separate process, for tests that end it in every way a process can end.
// Prints the URL when the server is ready, then waits until its stdin closes.

import { openEmbedded } from '../../../src/dev/embedded/embedded.ts';

await using embedded = await openEmbedded({ root: process.argv[2] ?? '.', scratch: process.argv[3] === 'scratch' });
process.stdout.write(`${embedded.url}\n`);
for await (const _ of process.stdin);
