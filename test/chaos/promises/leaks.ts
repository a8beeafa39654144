// Finds personal data and secrets where they must not be: an e-mail address, a phone number or a credential in a log (P18), a file left in
// the spool, even after processes died (P17), and requests that went elsewhere (P19).
import { type Dirent, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { Stage } from '../stage.ts';

export function findLeaks(
  folder: string,
  { accounts, s3 }: Pick<Stage, 'accounts' | 's3'>,
  processes: 'running' | 'ended',
): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true });
  const isSpooled = (file: Dirent) => file.isFile() && file.name.startsWith('intake-spool-');
  const said = files
    .filter((file) => file.isFile() && file.name.endsWith('.log'))
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'))
    .join('\n');
  // The spool unlinks a file right after opening it, before a byte is written. While processes run, a file may be visible for a moment; one
  // of a process that was killed in that moment is empty.
  const spooled = processes === 'running' ? [] : files.filter((file) => isSpooled(file) && sizeOf(file) > 0);
  const leaks = spooled.length > 0 ? [`P17: ${spooled.length} files of people lie in the spool`] : [];
  for (const account of accounts) {
    if (said.includes(account.credential)) leaks.push('P18: a credential is in the log');
    for (const { id, email, phone } of account.truth()) {
      if (said.includes(email) || said.includes(phone))
        leaks.push(`P18: an e-mail or phone of application ${id} is in the log`);
    }
  }
  if (said.includes(s3.credentials.secretAccessKey)) leaks.push('P18: a secret is in the log');
  return leaks.slice(0, 3);
}

function sizeOf({ parentPath, name }: Dirent): number {
  return statSync(join(parentPath, name)).size;
}

/**
 * Reads what watched-network.ts records inside the processes, and finds requests at the source for ids that it never listed. Every request
 * carries a credential, so a single wrong destination is a finding. The returned function checks the requests since its last call.
 */
export function createStrangerWatch(file: string, board: Sandbox): () => string[] {
  const known = new Set<string>();
  // Other checks read the same request log, so this one does not clear it.
  let lastSeen = 0;
  const isKnown = (id: string) => {
    if (!known.has(id))
      for (const account of board.advertisers) for (const one of account.truth()) known.add(`${one.id}`);
    return known.has(id);
  };
  return () => {
    const noted = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').slice(0, 1) : [];
    const asked = board.requests().filter(({ number }) => number > lastSeen);
    lastSeen = asked.at(-1)?.number ?? lastSeen;
    const astray = asked.filter(({ path }) => {
      const [id] = path.startsWith('/v1/') ? (/-?\d+$/.exec(path) ?? []) : [];
      return id !== undefined && !isKnown(id);
    });
    return [
      ...noted.map((what) => `P19: ${what}`),
      ...astray.slice(0, 1).map(({ path }) => `P19: ${path} was asked for, and the source shows no such application`),
    ];
  };
}
