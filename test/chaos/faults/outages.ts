// An outage of the source or of the storage lasts until `intake status`, run as a separate process, names it. An outage that is not named
// in time is a finding: the worker knows what it waits for, so the operator must be able to see it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultPlan } from '../../../src/dev/sandbox/behaviour/faults.ts';
import type { Random } from '../../support/suite/random.ts';
import { withSlack } from '../settings.ts';
import type { Stage } from '../stage.ts';
import type { End } from './database-faults.ts';

/** Workers poll every nine seconds, and other faults stop workers and the database meanwhile. */
const namedWithinMs = 20_000;

interface Told {
  readonly waits?: readonly { readonly dependency: string }[];
  readonly advertisers?: readonly { readonly halt: object | null; readonly due: number }[];
}

/** Cuts the connections to one side. The returned function waits until the outage is named, and ends it. */
export async function beginOutage(stage: Stage, side: 'source' | 'storage'): Promise<End> {
  const { proxies, workload } = stage;
  // Other faults of the same side may end during this one and open the proxy again.
  const cutting = setInterval(() => {
    if (proxies[side].mode === 'cut') return;
    proxies[side].mode = 'cut';
    proxies[side].cut();
  }, 50);
  // Gives the workers something to store.
  if (side === 'storage') workload.changeFiles();
  const named = untilNamed(stage, side);
  return async () => {
    await named;
    clearInterval(cutting);
    proxies[side].mode = 'open';
  };
}

async function untilNamed(stage: Stage, side: 'source' | 'storage'): Promise<void> {
  let dueSince: number | null = null;
  const retryForMs = withSlack(namedWithinMs);
  const giveUpAt = performance.now() + 2 * retryForMs;
  while (performance.now() < giveUpAt) {
    const told = toTold((await stage.runCommand(['status', '--json'])).output);
    if (told?.waits?.some(({ dependency }) => dependency === side)) return stage.count(`${side} outages named`);
    // A halted account sends no requests to the source, and without due files the worker does not use the storage.
    const isMet = told?.advertisers?.some(({ halt, due }) => halt === null && (side === 'source' || due > 0));
    dueSince = isMet ? (dueSince ?? performance.now()) : null;
    if (dueSince !== null && performance.now() - dueSince > retryForMs) {
      stage.report(
        `P13: intake status does not name an outage of the ${side} after ${Math.round(retryForMs / 1_000)} s`,
      );
      return;
    }
    await sleep(200);
  }
}

/** Null if the command printed no status, because the database is unavailable too. */
function toTold(output: string): Told | null {
  const line = output.split('\n').findLast((one) => one.startsWith('{"at"'));
  return line === undefined ? null : (JSON.parse(line) as Told);
}

/** Draws a failure that affects some or all requests, for lists or files, while the fault lasts. */
export function toSourceFault(random: Random): FaultPlan {
  const where = {
    on: random.pick(['list', 'attachments', 'any'] as const),
    times: null,
    probability: random.pick([0.2, 0.5, 1]),
  };
  const poison = random.pick([
    '{"ID": null}',
    '17',
    '{"ID": "1e3", "Email": "a@example.com"}',
    '{"FirstName": "a\\u0000b"}',
  ]);
  return random.pick<FaultPlan>([
    { ...where, kind: 'throttle', retryAfter: random.pick(['seconds', 'date', 'absent', 'zero', 'negative']) },
    { ...where, kind: 'fail', status: random.pick([500, 502, 503]) },
    // For a list, these two would mean "no applications", which no reader can disprove.
    { ...where, kind: 'fail', on: 'attachments', status: random.pick([404, 410]) },
    { ...where, kind: 'emptyBody', on: 'attachments' },
    { ...where, kind: 'html' },
    { ...where, kind: 'redirect', location: random.pick(['http://127.0.0.1:9/elsewhere', '//files.example.net/x']) },
    { ...where, kind: 'reset', at: random.pick(['start', 'headers', 'afterHeaders', 'body']) },
    { ...where, kind: 'hang', probability: 0.3 },
    { ...where, kind: 'slow', delayMs: random.between(200, 2_500) },
    { ...where, kind: 'drip', pieceBytes: 2_000, everyMs: 30 },
    { ...where, kind: 'cut', framing: random.pick(['contentLength', 'chunked']), keep: random.next() },
    // Three bodies end cleanly after a random share of the bytes. No length shows the truncation, only the Size in the list.
    { ...where, kind: 'cut', framing: 'closeDelimited', keep: random.next(), times: 3 },
    { ...where, kind: 'cut', framing: 'closeDelimited', on: 'files', keep: random.next(), times: 3 },
    { ...where, kind: 'wrongLength', byBytes: 10 },
    { ...where, kind: 'gzip', on: 'list' },
    { ...where, kind: 'gzipBomb', on: 'list', sizeBytes: 30_000_000, probability: 0.3 },
    { ...where, kind: 'flood', on: 'files', sizeBytes: 12_000_000, probability: 0.2 },
    { ...where, kind: 'closeAfter' },
    { ...where, kind: 'poison', on: 'list', json: poison, xml: '<JobApplication><ID>x</ID></JobApplication>' },
    { ...where, kind: 'duplicate', on: 'list', differing: random.chance(0.5) },
  ]);
}
