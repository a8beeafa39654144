// Failures of the source on list or file requests.

import type { FaultPlan } from '../../../src/dev/sandbox/behaviour/faults.ts';
import type { Random } from '../../support/suite/random.ts';

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
