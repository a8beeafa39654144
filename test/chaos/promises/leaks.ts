// Finds personal data and secrets where they must not be: an e-mail address, a phone number or a credential in a log (P18), and a file
// left in the spool, even after processes died (P17).

import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
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
