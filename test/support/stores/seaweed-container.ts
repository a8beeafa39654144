// SeaweedFS in a container, for one test file. This runs as a separate process: testcontainers keeps sockets to Docker open as long as its
// process lives, and a test file may leave none open. The process sends its parent the endpoint or the error, and ends on disconnect.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A running SeaweedFS without a bucket. */
export interface Seaweed extends AsyncDisposable {
  readonly endpoint: string;
}

export const seaweedImage = 'chrislusf/seaweedfs:4.40';
export const seaweedKeys = { accessKeyId: 'intake-test', secretAccessKey: 'intake-test-secret' };

/** Starts the container; the error says why it could not, such as an image that is not available. */
export async function openSeaweed(): Promise<Seaweed> {
  const child = fork(fileURLToPath(import.meta.url), { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const [told] = (await Promise.race([once(child, 'message'), ended])) as [
    { endpoint?: string; reason?: string } | number,
  ];
  const dispose = async () => {
    if (child.connected) child.disconnect();
    await ended;
  };
  if (typeof told === 'object' && told.endpoint) return { endpoint: told.endpoint, [Symbol.asyncDispose]: dispose };
  await dispose();
  throw new Error(typeof told === 'object' ? told.reason : `it ended with ${told}`);
}

async function runContainer(): Promise<void> {
  const released = once(process, 'disconnect');
  const { GenericContainer, Wait } = await import('testcontainers');
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = seaweedKeys;
  const actions = ['Admin', 'Read', 'Write', 'List'];
  const content = JSON.stringify({ identities: [{ name: 'test', credentials: [{ accessKey, secretKey }], actions }] });
  const container = await new GenericContainer(seaweedImage)
    .withCopyContentToContainer([{ content, target: '/etc/intake-s3.json' }])
    .withCommand(['server', '-dir=/data', '-s3', '-s3.config=/etc/intake-s3.json'])
    .withExposedPorts(8333)
    .withWaitStrategy(Wait.forHttp('/healthz', 8333))
    .withStartupTimeout(60_000)
    .start();
  process.send?.({ endpoint: `http://${container.getHost()}:${container.getMappedPort(8333)}` });
  await released;
  await container.stop();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runContainer().catch((error: Error) => process.send?.({ reason: error.message.split('\n')[0] }));
  process.exit();
}
