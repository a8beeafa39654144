// Real servers that speak S3, as a distribution ships them: each runs in a separate folder, with one bucket.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { findFreePort } from '../support/servers/free-port.ts';

export interface RealStore extends AsyncDisposable {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface StoreChoice {
  readonly name: string;
  /** Why the store is not available; null when it is. */
  readonly absent: string | null;
  /** How the store treats If-None-Match. */
  readonly conditionalPut: 'honoured' | 'ignored';
  readonly open: () => Promise<RealStore>;
}

export const stores: readonly StoreChoice[] = [
  {
    name: 'Ceph radosgw',
    absent: lacking('radosgw', 'ceph-mon', 'ceph-osd', 'ceph-mgr', 'ceph', 'curl'),
    conditionalPut: 'honoured',
    open: () => openScripted('radosgw.sh', 2, 'intake', (user) => user),
  },
  {
    name: 'OpenStack Swift',
    absent: lacking(
      ...['proxy', 'account', 'container', 'object'].map((part) => `swift-${part}-server`),
      ...['memcached', 'curl'],
    ),
    conditionalPut: 'ignored',
    open: () => openScripted('swift.sh', 5, 'intake', (user) => `intake:${user}`),
  },
];

function lacking(...programs: string[]): string | null {
  const absent = programs.filter((program) => {
    try {
      execFileSync('which', [program], { stdio: 'pipe' });
      return false;
    } catch {
      return true;
    }
  });
  return absent.length === 0 ? null : `not installed: ${absent.join(', ')}`;
}

const startsWithinMs = 300_000;

async function openScripted(
  script: string,
  portCount: number,
  user: string,
  toAccessKey: (user: string) => string,
): Promise<RealStore> {
  const folder = mkdtempSync('/var/tmp/intake-store-');
  const ports: number[] = [];
  while (ports.length < portCount) ports.push(await findFreePort());
  const secretAccessKey = 'intake-secret';
  const child = spawn('sh', [join(import.meta.dirname, script), folder, ...ports.map(String), user, secretAccessKey], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  const ready = new Promise<boolean>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => line === 'ready' && resolve(true));
    void ended.then(() => resolve(false));
    AbortSignal.timeout(startsWithinMs).addEventListener('abort', () => resolve(false));
  });
  const close = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  if (!(await ready)) {
    child.kill('SIGTERM');
    await ended;
    throw new Error(`${script} did not become ready; see ${join(folder, 'errors')}.`);
  }
  const store = {
    endpoint: `http://127.0.0.1:${ports.at(-1)}`,
    bucket: 'intake-test',
    region: 'us-east-1',
    accessKeyId: toAccessKey(user),
    secretAccessKey,
    [Symbol.asyncDispose]: close,
  };
  const { endpoint, region, accessKeyId } = store;
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  });
  await client.send(new CreateBucketCommand({ Bucket: store.bucket }));
  client.destroy();
  return store;
}
