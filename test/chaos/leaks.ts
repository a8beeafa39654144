// What must be nowhere: an address, a phone number or a credential in anything that a process said, and a file of anybody's where
// downloads wait, although processes died there (P17, P18).

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from './stage.ts';

/** What is there nevertheless. */
export function findLeaks(
  folder: string,
  { accounts, s3 }: Pick<Stage, 'accounts' | 's3'>,
  processes: 'running' | 'ended',
): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true });
  const spooled = files.filter((file) => file.isFile() && file.parentPath.includes('intake-spool-'));
  const said = files
    .filter((file) => file.isFile() && file.name.endsWith('.log'))
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'))
    .join('\n');
  // A file is unlinked as soon as it is open: between the two it may be seen.
  const leaks =
    processes === 'ended' && spooled.length > 0 ? [`P17: ${spooled.length} files of people lie in the spool`] : [];
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
