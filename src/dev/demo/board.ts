// The demo's job board: a sandbox account that stays the same from one demo to the next. Its people applied over the weeks before the first
// demo, as in an account that has run for a while. A file in the state folder records when that was, and who applied during demos.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Trouble } from '../../domain/trouble.ts';
import { openSandbox, type Sandbox } from '../sandbox/http/server.ts';

export type Board = Sandbox & {
  /** How many applications the first demo of this checkout started with. */
  readonly begunWith: number;
  /** Adds one application now. */
  arrive(): void;
};

export interface BoardOptions {
  readonly stateDir: string;
  /** For a new board only; a saved board keeps its number. */
  readonly applications: number;
  readonly port: number;
}

/** Enough to fill the status page's thirty days. */
const newBoardWeeks = 5;

/** Opens the board of this checkout, with the same people and times as in the previous demo. */
export async function openBoard({ stateDir, applications, port }: BoardOptions): Promise<Board> {
  const file = join(stateDir, 'demo-board.json');
  const kept = loadBoard(file) ?? { startedAt: Date.now(), weeks: newBoardWeeks, applications, added: [] };
  const added = [...kept.added];
  const save = () => {
    try {
      mkdirSync(stateDir, { recursive: true });
      // Replaced atomically: an incomplete file would give a new board with other people.
      writeFileSync(`${file}.new`, JSON.stringify({ ...kept, added }));
      renameSync(`${file}.new`, file);
    } catch (cause) {
      const { code = 'unknown' } = cause as NodeJS.ErrnoException;
      throw new Trouble('local', `The demo cannot write into ${stateDir} (${code}).`, { cause });
    }
  };
  save();
  let now = () => kept.startedAt;
  const board = await openSandbox({ ...kept, seed: 1, port, now: () => now() });
  board.add(kept.added.map((submittedAt) => ({ submittedAt })));
  now = Date.now;
  return Object.assign(board, {
    begunWith: kept.applications,
    // Saved before it can be read, so that a killed demo does not lose an application that the database has.
    arrive() {
      const submittedAt = Date.now();
      added.push(submittedAt);
      save();
      board.add([{ submittedAt }]);
    },
  });
}

interface KeptBoard {
  readonly startedAt: number;
  /** Absent in boards of earlier versions, which spread over a year, as a sandbox does by default. */
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
 * Adds applications until it is disposed: the first after five seconds, so that there is something to see, then at growing intervals of up
 * to five minutes. A demo that runs for hours then has about the rate of its earlier weeks.
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
