// Runs the contract of all blob stores against every S3 store that this machine can start.
//   npx node test/real/main.ts                  all of them
//   npx node test/real/main.ts --only swift     only stores whose name contains this
// A line that starts with `none` names a store that is not available, and why. Exits with 1 when a test failed or none ran.
// docs/compatibility.md keeps the results, and says how to run the contract on a store of your own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { type StoreChoice, stores } from './stores.ts';

const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const codes: unknown[] = [];
for (const choice of stores) {
  if (!choice.name.toLowerCase().includes(options.only.toLowerCase())) continue;
  process.stdout.write(`${choice.absent === null ? 'run' : 'none'} ${choice.name} ${choice.absent ?? ''}\n`);
  if (choice.absent === null) codes.push(await runContract(choice));
}
process.exitCode = codes.length > 0 && codes.every((code) => code === 0) ? 0 : 1;

async function runContract({ conditionalPut, open }: StoreChoice): Promise<unknown> {
  await using store = await open();
  const test = ['test/contract/blobs.test.ts', '-t', 'S3_TEST_ENDPOINT'];
  const child = spawn(process.execPath, ['test/support/suite/run.ts', ...test], {
    stdio: 'inherit',
    env: {
      ...process.env,
      S3_TEST_ENDPOINT: store.endpoint,
      S3_TEST_CONDITIONAL_PUT: conditionalPut,
      S3_TEST_BUCKET: store.bucket,
      S3_TEST_REGION: store.region,
      AWS_ACCESS_KEY_ID: store.accessKeyId,
      AWS_SECRET_ACCESS_KEY: store.secretAccessKey,
    },
  });
  const [code] = await once(child, 'exit');
  return code;
}
