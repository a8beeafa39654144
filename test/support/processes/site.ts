// Intake as one operator has it, for tests of commands: a board, a database without rows, and folders of its own.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSandbox, type Sandbox, type SandboxOptions } from '../../../src/dev/sandbox/http/server.ts';
import { test as base, type TestDatabase } from '../database/test-database.ts';
import { callIntake, type Ended } from './intake.ts';
import { type CountedSweep, syncBoard, toEnvironment } from './syncing.ts';

export interface Site {
  readonly board: Sandbox;
  readonly database: TestDatabase;
  readonly env: Record<string, string>;
  /** Holds the blobs, in `blobs`, and whatever a test puts beside them. */
  readonly folder: string;
  /** Runs a command in this process, as it is typed: `intake('sync --no-files')`. The settings given here win over `env`. */
  intake(line: string, settings?: Readonly<Record<string, string>>): Promise<Ended>;
  /** Reads the board with its files by date: seven requests instead of the fifty of a sync, which also proves. */
  fill(): Promise<void>;
  /** Reads the list without files: what is new, or with `recheck` everything. Throws the trouble of a sync that failed. */
  sync(settings?: Readonly<Record<string, string>>): Promise<readonly CountedSweep[]>;
  recheck(settings?: Readonly<Record<string, string>>): Promise<readonly CountedSweep[]>;
}

export interface SiteOptions extends SandboxOptions {
  /** Instead of the file's own database, emptied. */
  readonly database?: TestDatabase;
}

/** `test` with `openSite`, which opens a site for one test. */
export const test = base.extend('openSite', async ({ emptied }, { onCleanup }) => {
  const stack = new AsyncDisposableStack();
  onCleanup(() => stack.disposeAsync());
  return async ({ database = emptied, ...options }: SiteOptions = {}): Promise<Site> => {
    const board = stack.use(await openSandbox(options));
    const folder = mkdtempSync(join(tmpdir(), 'intake-test-'));
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    const env = toEnvironment(database, board, join(folder, 'blobs'));
    const intake: Site['intake'] = (line, settings = {}) => callIntake(line.split(' '), { ...env, ...settings });
    const fill = async () => expect(await intake('backfill --from 2000-01-01')).toMatchObject({ code: 3 });
    const read =
      (recheck: boolean): Site['sync'] =>
      (settings) =>
        syncBoard(database, board, { env: { ...env, ...settings }, recheck });
    return { board, database, env, folder, intake, fill, sync: read(false), recheck: read(true) };
  };
});

/** What a command with --json says in the end. */
export const toResult = ({ stdout }: Ended) => JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
