// The pulse of a process: which work is under way, and how long each of it has not moved. It ends nothing; whoever watches decides
// when silence is death (P13). Work that waits with a timer of its own is not silent, however long it waits; a process whose last work
// has ended is.

/** One piece of work. Disposed when it ends. */
export interface Beat extends Disposable {
  /** It moved: a step, a request, a wait that begins. */
  move(): void;
  /** Waits for something that ends by itself. */
  rest<T>(waiting: Promise<T>): Promise<T>;
}

export interface Pulse {
  /** Work begins. */
  begin(): Beat;
  /** How long the quietest work under way has not moved; where none is, how long ago the last ended; 0 before the first. */
  silentMs(): number;
}

export function createPulse(now: () => number): Pulse {
  const movedAt = new Map<Beat, number>();
  let endedAt = Number.POSITIVE_INFINITY;
  return {
    begin() {
      let rests = 0;
      const beat: Beat = {
        move: () => void (movedAt.has(beat) && movedAt.set(beat, rests > 0 ? Number.POSITIVE_INFINITY : now())),
        async rest(waiting) {
          rests++;
          beat.move();
          try {
            return await waiting;
          } finally {
            rests--;
            beat.move();
          }
        },
        [Symbol.dispose]() {
          movedAt.delete(beat);
          endedAt = now();
        },
      };
      movedAt.set(beat, now());
      return beat;
    },
    silentMs: () => Math.max(0, now() - (movedAt.size > 0 ? Math.min(...movedAt.values()) : endedAt)),
  };
}
