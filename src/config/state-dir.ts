// Where a checkout keeps its own things outside production. What belongs together lies together: the embedded database is the checkout's,
// so its privacy key, its files and its demo are too, from whichever folder a command is run. Beside a database that was named, the
// working folder is used, as for every relative path.
import { join } from 'node:path';

/** The folder of the checkout, in which the embedded database lies as well. */
export const checkoutStateDir = join(import.meta.dirname, '../../.intake');

/** The folder for what these settings leave to Intake. */
export function toStateDir(env: Readonly<Record<string, string | undefined>>): string {
  const isNamed = Boolean(env.DATABASE_URL_FILE) || (env.DATABASE_URL?.trim() || 'embedded') !== 'embedded';
  return isNamed ? '.intake' : checkoutStateDir;
}
