// Calls that arrive while a statement runs share the next one: watching a thousand advertisers costs little more than watching ten, and
// downloads that finish together share one flush to the disk. A call waits one tick of the event loop, and for the statement before it.
// Calls share a statement, not its fate: when it fails although the database is available, each call is worked on alone.
import { Trouble } from '../../domain/trouble.ts';

interface PendingCall<Call, Answer> extends PromiseWithResolvers<Answer> {
  readonly call: Call;
}

/**
 * Turns a function of many calls into a function of one call. `work` returns answers in the order of the calls, or none. Statements of one
 * group run one after the other; groups do not wait for each other.
 */
export function coalesce<Call, Answer>(
  work: (calls: readonly Call[]) => Promise<readonly Answer[]> | Promise<void>,
  toGroup: (call: Call) => unknown = () => null,
  most = 200,
): (call: Call) => Promise<Answer> {
  const groups = new Map<unknown, PendingCall<Call, Answer>[]>();

  async function answer(batch: readonly PendingCall<Call, Answer>[]): Promise<void> {
    try {
      const answers = await work(batch.map(({ call }) => call));
      for (const [at, { resolve }] of batch.entries()) resolve(answers?.[at] as Answer);
    } catch (error) {
      // A Trouble means that the database is unavailable: it would fail for each call alone as well.
      if (batch.length > 1 && !(error instanceof Trouble)) for (const one of batch) await answer([one]);
      else for (const { reject } of batch) reject(error);
    }
  }

  async function run(group: unknown, waiting: PendingCall<Call, Answer>[]): Promise<void> {
    while (waiting.length > 0) await answer(waiting.splice(0, most));
    groups.delete(group);
  }

  return (call) => {
    const pending = { call, ...Promise.withResolvers<Answer>() };
    const group = toGroup(call);
    const waiting = groups.get(group);
    if (waiting) waiting.push(pending);
    else {
      const opened = [pending];
      groups.set(group, opened);
      setImmediate(() => void run(group, opened));
    }
    return pending.promise;
  };
}
