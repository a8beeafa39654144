// A candidate who comes back from the source with a profile and a resume: what the public routes do with them, without HTTP.
import { createHash } from 'node:crypto';
import type { BlobStore } from '../../../src/domain/blob.ts';
import { parseProfile } from '../../../src/source/parse/profile.ts';
import type { PrefillSource } from '../../../src/source/prefill.ts';
import { openSpool } from '../../../src/sync/files/spool.ts';
import { createSlots } from '../../../src/sync/limits.ts';
import { beginPrefill, finishPrefill, type PrefillDeps } from '../../../src/sync/prefill.ts';
import type { SmallIntake } from '../small-intake.ts';

export const bytes = Buffer.from('zeldas resume');
export const resume = {
  sizeBytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  fileName: 'zelda-cv.pdf',
  contentType: 'application/pdf',
};

export interface Visit {
  readonly profile: Record<string, unknown>;
  readonly sessionIds?: readonly string[];
  readonly blobs?: Partial<BlobStore>;
  /** Awaited when the profile is here and not kept yet. */
  readonly onProfile?: () => Promise<unknown>;
  readonly onEnd?: PrefillDeps['onEnd'];
  /** What the careers site says in its addresses. */
  readonly request?: Partial<Parameters<typeof beginPrefill>[2]['request']>;
  readonly signal?: AbortSignal;
}

/** A candidate who allows it comes back; the handle that the careers site gets, or null. */
export async function visit(intake: SmallIntake, how: Visit): Promise<{ handle: string | null; deps: PrefillDeps }> {
  const { store, board } = intake;
  const source: PrefillSource = {
    toAuthorizeUrl: (state) => `https://auth.example.com/?state=${state}`,
    openSession: async () => ({
      loadProfile: async () => {
        await how.onProfile?.();
        return parseProfile(how.profile, 'https://api.example.com', how.sessionIds);
      },
      loadResume: async () => ({ ...resume, body: bytes, [Symbol.asyncDispose]: async () => {} }),
    }),
  };
  const account = { source, returnUrls: [], bearerToken: () => 'key' };
  const deps: PrefillDeps = {
    store,
    blobs: { ...intake.blobs, ...how.blobs },
    spool: openSpool(intake.folder),
    slots: createSlots(1),
    accounts: new Map([['default', account]]),
    ttlMs: 86_400_000,
    onEnd: how.onEnd ?? (() => {}),
  };
  const site = 'https://careers.example.com/apply';
  const { advertiserId } = board;
  const request = {
    ...{ advertiserId, formUrl: site, returnUrl: site },
    ...{ positionTitle: null, positionUri: null, countryCode: null, postalCode: null },
    ...how.request,
  };
  await store.advertisers.ensure('default', advertiserId);
  const url = await beginPrefill(deps, account, { request, binding: 'browser' });
  const state = new URL(url).searchParams.get('state') ?? '';
  const back = await finishPrefill(deps, {
    ...{ state, binding: 'browser', answer: { code: 'code' }, signal: how.signal ?? AbortSignal.timeout(600_000) },
  });
  return { handle: new URL(back ?? '').searchParams.get('prefill'), deps };
}
