// The demo's job board: a sandbox account that stays the same from one demo to the next. Its people applied over the weeks before the first
// demo, as in an account that has run for a while; a file in the checkout's state folder remembers when, and who applied during demos.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Trouble } from '../../domain/trouble.ts';
import { openSandbox, type Sandbox } from '../sandbox/http/server.ts';

export type Board = Sandbox & {
  /** How many applications the first demo of this checkout began with. */
  readonly begunWith: number;
  /** One more person applies now. */
  arrive(): void;
};

export interface BoardOptions {
  readonly stateDir: string;
  /** For a new board; one that was kept goes on as it began. */
  readonly applications: number;
  readonly port: number;
}

/** Enough to fill the status page's thirty days. */
const newBoardWeeks = 5;

/** Opens the board of this checkout: the same people and times as in the demo before. */
export async function openBoard({ stateDir, applications, port }: BoardOptions): Promise<Board> {
  const file = join(stateDir, 'demo-board.json');
  const kept = loadBoard(file) ?? { startedAt: Date.now(), weeks: newBoardWeeks, applications, added: [] };
  const added = [...kept.added];
  const save = () => {
    try {
      mkdirSync(stateDir, { recursive: true });
      // Whole or not at all: half a file would be a new board, of strangers.
      writeFileSync(`${file}.new`, JSON.stringify({ ...kept, added }));
      renameSync(`${file}.new`, file);
    } catch (cause) {
      const { code = 'unknown' } = cause as NodeJS.ErrnoException;
      throw new Trouble('local', `The demo cannot write into ${stateDir} (${code}).`, { cause });
    }
  };
  save();
  let now = () => kept.startedAt;
  const { weeks = yearWeeks } = kept;
  const board = await openSandbox({ seed: 1, applications: kept.applications, weeks, port, now: () => now() });
  board.add(kept.added.map((submittedAt) => ({ submittedAt })));
  now = Date.now;
  return Object.assign(board, {
    begunWith: kept.applications,
    // Written down before anybody can read it: a demo that is killed forgets nobody whom the database knows.
    arrive() {
      const submittedAt = Date.now();
      added.push(submittedAt);
      save();
      board.add([{ submittedAt }]);
    },
  });
}

/** Boards of earlier versions spread over a year and do not say so. */
const yearWeeks = 52;

interface KeptBoard {
  readonly startedAt: number;
  readonly weeks?: number;
  readonly applications: number;
  readonly added: readonly number[];
}

function loadBoard(file: string): KeptBoard | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as KeptBoard;
  } catch {
    return undefined;
  }
}

const firstPauseMs = 5_000;
const longestPauseMs = 300_000;

/**
 * Lets people apply until it is disposed: one after five seconds, so that there is something to see, then ever more rarely, down to one in
 * five minutes. A demo that runs for hours keeps the rhythm of its weeks before.
 */
export function startArrivals(board: Pick<Board, 'arrive'>): Disposable {
  let pauseMs = firstPauseMs;
  const next = (): NodeJS.Timeout =>
    setTimeout(() => {
      board.arrive();
      pauseMs = Math.min(longestPauseMs, pauseMs * 1.5);
      timer = next();
    }, pauseMs);
  let timer = next();
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}
