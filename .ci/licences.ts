// Lists the licences of everything that is installed in production, by licence, from the lock; fails on one that nobody has looked at.
import { readFileSync } from 'node:fs';

interface Locked {
  readonly version: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

/** Permissive: they ask for their notice to be kept, and for nothing else. */
const looked = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0', 'MIT-0']);

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Locked> };
const byLicence = new Map<string, string[]>();
for (const [path, { dev, license = 'unknown', version }] of Object.entries(packages)) {
  if (path === '' || dev) continue;
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  byLicence.set(license, [...(byLicence.get(license) ?? []), `${name} ${version}`]);
}
for (const [licence, names] of [...byLicence].sort(([, a], [, b]) => b.length - a.length)) {
  process.stdout.write(`${licence} (${names.length}): ${names.sort().join(', ')}\n`);
}
const strange = [...byLicence.keys()].filter((licence) => !looked.has(licence));
if (strange.length > 0) {
  process.stderr.write(`Nobody has looked at: ${strange.join(', ')}\n`);
  process.exitCode = 1;
}
