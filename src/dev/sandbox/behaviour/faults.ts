// Faults: named failures that happen to the next requests, or to some of them, on some paths. A fault is taken when a request arrives;
// mishap.ts and v1.ts (content) and transport.ts (bytes) apply it to the answer.

import { z } from 'zod';
import { idForm } from '../people/plan.ts';
import { createDraw } from '../people/random.ts';

const attachmentRoutes = ['resume', 'coverLetter', 'selectionCriteria', 'screen'] as const;
const candidateRoutes = ['authorize', 'token', 'prefilled', 'candidateResume'] as const;
const routes = ['list', ...attachmentRoutes, ...candidateRoutes] as const;
/** The routes of the advertiser side. */
export type Route = 'list' | (typeof attachmentRoutes)[number];
/** The routes of the candidate side. */
export type CandidateRoute = (typeof candidateRoutes)[number];

const when = {
  /** The paths that it affects. `files`: the three downloads; `attachments`: the downloads and the screen. */
  on: z.enum([...routes, 'files', 'attachments', 'any']).default('any'),
  applicationId: idForm.optional(),
  /** How many matching requests pass first. */
  skip: z.int().nonnegative().default(0),
  /** How often it happens; null is without limit. */
  times: z.int().positive().nullable().default(1),
  /** The probability per request, drawn from the seed. */
  probability: z.number().min(0).max(1).default(1),
};

function fault<const Kind extends string, Shape extends z.ZodRawShape>(kind: Kind, meaning: string, shape: Shape) {
  return z.strictObject({ kind: z.literal(kind), ...when, ...shape }).describe(meaning);
}

/** Every fault with its parameters. */
export const faultForm = z.discriminatedUnion('kind', [
  fault('throttle', '429, with or without Retry-After.', {
    retryAfter: z.enum(['seconds', 'date', 'absent', 'zero', 'negative', 'day']).default('seconds'),
    seconds: z.int().positive().default(1),
  }),
  fault('fail', 'An error status.', { status: z.int().min(400).max(599).default(500) }),
  fault('refuse', 'The credential is temporarily rejected.', {
    status: z.union([z.literal(401), z.literal(403)]).default(401),
  }),
  fault('html', 'A login or error page with status 200 and text/html.', {}),
  fault('emptyBody', 'Status 200 with an empty body.', {}),
  fault('redirect', 'A redirect; without a location, to the same address.', {
    status: z.union([z.literal(301), z.literal(302), z.literal(307), z.literal(308)]).default(302),
    location: z.string().optional(),
  }),
  fault('reset', 'The connection is reset.', {
    at: z.enum(['start', 'headers', 'afterHeaders', 'body']).default('start'),
  }),
  fault('hang', 'The request is never answered.', {}),
  fault('slow', 'The answer is generated at once and sent later, so an older answer may arrive after a newer one.', {
    delayMs: z.int().positive().default(1000),
  }),
  fault('drip', 'The body is sent slowly, in small pieces.', {
    pieceBytes: z.int().positive().default(1),
    everyMs: z.int().positive().default(100),
  }),
  fault('cut', 'The body ends early.', {
    framing: z.enum(['contentLength', 'chunked', 'closeDelimited']).default('chunked'),
    keep: z.number().min(0).max(1).default(0.5),
  }),
  fault('wrongLength', 'Content-Length is wrong by this many bytes.', { byBytes: z.int().default(10) }),
  fault('gzip', 'The body is compressed although the request did not allow it.', {}),
  fault('gzipBomb', 'A small compressed body that inflates to a large one.', {
    sizeBytes: z.int().positive().default(100_000_000),
  }),
  fault('flood', 'A body of this many meaningless bytes.', { sizeBytes: z.int().positive().default(10_000_000_000) }),
  fault('closeAfter', 'The connection is closed after the answer, although keep-alive was announced.', {}),
  fault('otherAdvertiser', "The list contains another advertiser's id.", { advertiserId: idForm.default(99_999_999n) }),
  fault(
    'poison',
    'An element with the given text is inserted into the list; {{volatile}} in it is replaced by a new value every time.',
    {
      json: z.string(),
      xml: z.string().default(''),
      position: z.int().nonnegative().default(0),
    },
  ),
  fault('duplicate', 'The first application of the page occurs twice, equal or different.', {
    differing: z.boolean().default(false),
  }),
  fault('grow', 'Each list request adds applications first, so that the list always has new ones.', {
    count: z.int().positive().default(1),
  }),
  fault('otherBytes', 'A file has different bytes on every download.', {}),
]);

export type FaultPlan = z.input<typeof faultForm>;
export type Fault = z.output<typeof faultForm>;

/** The parts of a request that faults match. */
export interface FaultTarget {
  readonly route: Route | CandidateRoute;
  readonly applicationId: bigint | null;
}

export type Faults = ReturnType<typeof createFaults>;

/** The faults of one account, in the order in which they were added. Starts without any. */
export function createFaults(seed: number) {
  let armed: { readonly number: number; met: number; happened: number; readonly fault: Fault }[] = [];
  let lastNumber = 0;
  const draw = createDraw(seed, 5);
  return {
    add(plan: FaultPlan): number {
      lastNumber += 1;
      armed.push({ number: lastNumber, met: 0, happened: 0, fault: faultForm.parse(plan) });
      return lastNumber;
    },
    /** Removes one fault, or all. */
    clear(number?: number): void {
      armed = number === undefined ? [] : armed.filter((one) => one.number !== number);
    },
    /** Returns the faults that happen to this request, and counts them. */
    take(target: FaultTarget): Fault[] {
      const taken: Fault[] = [];
      for (const one of armed) {
        const { fault: wanted } = one;
        if (!matches(wanted, target)) continue;
        one.met += 1;
        if (one.met <= wanted.skip || (wanted.times !== null && one.happened >= wanted.times)) continue;
        if (wanted.probability < 1 && draw.below(1_000_000) >= wanted.probability * 1_000_000) continue;
        one.happened += 1;
        taken.push(wanted);
      }
      return taken;
    },
    list: () => armed.map(({ number, happened, fault: wanted }) => ({ number, happened, fault: wanted })),
  };
}

function matches(wanted: Fault, target: FaultTarget): boolean {
  if (wanted.applicationId !== undefined && wanted.applicationId !== target.applicationId) return false;
  if (wanted.on === 'any' || wanted.on === target.route) return true;
  if (!attachmentRoutes.some((route) => route === target.route)) return false;
  return wanted.on === 'attachments' || (wanted.on === 'files' && target.route !== 'screen');
}
