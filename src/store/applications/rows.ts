// Maps a changed application to an element of the jsonb parameter that the statements of update.ts unpack, and holds what changed and new
// applications (insert.ts) share. Pure mapping; it knows column names but no SQL.
import type { KeyObject } from 'node:crypto';
import { type Application, toFirstState } from '../../domain/application.ts';
import { toPersonKey } from '../person-key.ts';
import type { Lease } from '../sweeps/leases.ts';

/** Files of live arrivals are downloaded before those of a backfill. */
export function toPriority(lease: Lease): number {
  return lease.lane === 'live' ? 0 : 1;
}

/** An application without a file to download is ready when it arrives. */
export function isReady(application: Application): boolean {
  return application.attachments.every((attachment) => toFirstState(attachment).state !== 'pending');
}

/** One application as JSON text. `raw` is JSON already and is inserted unchanged. */
export function toRow(key: KeyObject, advertiserId: bigint, a: Application): string {
  const head = JSON.stringify({
    id: a.id.toString(),
    submitted_at: toTime(a.submittedAt),
    source_offset: a.sourceOffset,
    email: a.email,
    first_name: a.firstName,
    last_name: a.lastName,
    phone: a.phone,
    job_seeker_id: a.jobSeekerId,
    job_reference: a.jobReference,
    raw_text: a.rawText,
    notes: a.notes.length > 0 ? a.notes : undefined,
    person_key: toPersonKey(key, advertiserId, a),
    hash: a.contentHash,
    facts_hash: a.factsHash,
    info: a.jobSeekingInfo ?? undefined,
    attachments: a.attachments.map((f) => ({
      kind: f.kind,
      ...toFirstState(f),
      source_hash: f.sourceHash,
      size_bytes: f.sizeBytes,
      has_virus: f.hasVirus,
      uploaded_at: toTime(f.uploadedAt),
      href: f.href,
    })),
  });
  return `${head.slice(0, -1)},"raw":${a.raw}}`;
}

const dayMs = 86_400_000;
const twoDigits = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
let lastDay = { startsAt: Number.NaN, text: '' };

/** A time as text for Postgres. The days of a page repeat: with the last day's text cached it takes 0.16 us, toISOString 1.1 (measured). */
export function toTime(ms: number | null): string | null {
  if (ms === null) return null;
  const startsAt = Math.floor(ms / dayMs) * dayMs;
  if (startsAt !== lastDay.startsAt) lastDay = { startsAt, text: new Date(startsAt).toISOString().slice(0, 11) };
  const second = Math.floor((ms - startsAt) / 1000);
  const [hours, minutes, seconds] = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60];
  const rest = String((ms - startsAt) % 1000).padStart(3, '0');
  return `${lastDay.text}${twoDigits[hours]}:${twoDigits[minutes]}:${twoDigits[seconds]}.${rest}Z`;
}
