// Calls that come while one is under way are written together by the next: under load many share one transaction and one flush to the
// disk, and a single call does not wait. Knows nothing of what is written.

/** Work on several calls at once; one answer for each, in their order. */
export type WorkTogether<Call, Answer> = (calls: readonly Call[]) => Promise<readonly PromiseSettledResult<Answer>[]>;

interface Waiting<Call, Answer> {
  readonly call: Call;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: unknown) => void;
}

/** More would keep locks for longer than they save flushes. */
const mostTogether = 64;

/** Makes a call for one of work on many. Calls of a group follow each other; groups do not wait for each other. */
export function createCoalescer<Call, Answer>(
  toGroup: (call: Call) => unknown,
  work: WorkTogether<Call, Answer>,
): (call: Call) => Promise<Answer> {
  const groups = new Map<unknown, Waiting<Call, Answer>[]>();

  async function run(group: unknown, waiting: Waiting<Call, Answer>[]): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, mostTogether);
      try {
        const answers = await work(batch.map(({ call }) => call));
        for (const [at, { resolve, reject }] of batch.entries()) {
          const answer = answers[at];
          if (answer?.status === 'fulfilled') resolve(answer.value);
          else reject(answer?.reason);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    groups.delete(group);
  }

  return (call) =>
    new Promise((resolve, reject) => {
      const group = toGroup(call);
      const waiting = groups.get(group);
      if (waiting) {
        waiting.push({ call, resolve, reject });
        return;
      }
      const opened = [{ call, resolve, reject }];
      groups.set(group, opened);
      void run(group, opened);
    });
}
