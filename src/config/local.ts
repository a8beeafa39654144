// The files in .intake/ that let commands run without settings outside production: the settings of the last demo and a
// privacy key. Both are readable by their owner only. Nothing here is used in production.

import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { loadSecret, type Secret } from './secret.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The state folder of the checkout, which also holds the embedded database. */
export const checkoutStateDir = join(import.meta.dirname, '../../.intake');

/**
 * The folder for state that no setting places elsewhere. The embedded database belongs to the checkout, so its privacy key, files and demo
 * settings do too, whatever the working folder. With a configured database it is in the working folder, as every relative path.
 */
export function toStateDir(env: Environment): string {
  const isNamed = Boolean(env.DATABASE_URL_FILE) || (env.DATABASE_URL?.trim() || 'embedded') !== 'embedded';
  return isNamed ? '.intake' : checkoutStateDir;
}

export function saveDemoSettings(env: Readonly<Record<string, string>>, stateDir: string): void {
  const file = join(stateDir, 'demo.json');
  mkdirSync(stateDir, { recursive: true });
  rmSync(file, { force: true });
  writeFileSync(file, JSON.stringify({ pid: process.pid, env }, null, 2), { mode: 0o600 });
}

/** The process of a demo that runs in this checkout, or null. */
export function findRunningDemo(stateDir: string): number | null {
  const demo = loadDemo(join(stateDir, 'demo.json'));
  return demo !== undefined && demo.pid !== process.pid && isAlive(demo.pid) ? demo.pid : null;
}

/**
 * The environment, completed by the settings of the last demo; variables that are set take precedence. Null where they do not apply: the
 * environment names another source, database or store, since invented people must never reach a real database; or the demo has ended and
 * the command reads its board.
 */
export function findDemoSettings(env: Environment, stateDir: string, readsSource: boolean): Environment | null {
  if (env.SOURCE_URL || env.ADVERTISERS_FILE) return null;
  const demo = loadDemo(join(stateDir, 'demo.json'));
  if (demo === undefined || (readsSource && !isAlive(demo.pid))) return null;
  const foreign = ['SOURCE_CREDENTIAL', 'DATABASE_URL', 'BLOBS_URL'].some(
    (name) => env[`${name}_FILE`] || (env[name] && env[name] !== demo.env[name]),
  );
  return foreign ? null : { ...demo.env, ...Object.fromEntries(Object.entries(env).filter(([, text]) => text)) };
}

/** The local privacy key, created on first use. */
export function loadLocalPrivacyKey(stateDir: string): Secret {
  const file = join(stateDir, 'privacy-key');
  mkdirSync(stateDir, { recursive: true });
  const draft = `${file}.${process.pid}`;
  try {
    return loadSecret(file);
  } catch {
    // Linking is atomic: of several processes that start together one creates the key and all read it.
    writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 });
    try {
      linkSync(draft, file);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    return loadSecret(file);
  } finally {
    rmSync(draft, { force: true });
  }
}

const demoFile = z.object({ pid: z.int().positive(), env: z.record(z.string(), z.string()) });

function loadDemo(file: string) {
  try {
    return demoFile.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
