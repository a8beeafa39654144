// A proof as the lines of a file that others can check. docs/proof-format.md defines the format.

import type { Conclusion } from '../coverage/certificate.ts';
import type { Covered } from '../coverage/range.ts';
import type { ChainedRecord } from './chain.ts';
import { seal, toHex, toText } from './record.ts';
import { type Hash, isErased, rootOf, saltsOf } from './tree.ts';

/** A certificate, and the last hash of the evidence behind it. */
export interface ExportedCertificate extends Covered, Conclusion {
  readonly sweepId: bigint;
  readonly startedAt: Date;
  readonly completeThrough: Date;
  readonly last: Uint8Array | null;
}

/** A stored application. Times are in seconds since 1970. */
export interface ExportedRow {
  readonly id: bigint;
  /** Null if the application was erased: only its id is left. */
  readonly firstSeen: bigint | null;
  readonly missingSince: bigint | null;
}

/** The first line. */
export function toProofLine(
  advertiserId: bigint,
  exportedAt: Date,
  certificates: readonly ExportedCertificate[],
): string {
  return JSON.stringify({
    type: 'proof',
    format: 1,
    advertiser: String(advertiserId),
    exportedAt: exportedAt.getTime(),
    certificates: certificates.map((one) => ({
      low: String(one.low),
      high: toText(one.high),
      certificate: one.certificate,
      risk: one.risk,
      reason: one.reason,
      sweep: String(one.sweepId),
      startedAt: one.startedAt.getTime(),
      completeThrough: one.completeThrough.getTime(),
      last: toHex(one.last),
    })),
  });
}

/** The line of a record. Only the first record of a sweep contains `bodyKey`. */
export function toRecordLine(hash: Hash, chained: ChainedRecord, bodyKey: Uint8Array | null): string {
  const { n, record, leaves } = chained;
  const { type } = record;
  return JSON.stringify({
    type,
    n,
    sealed: seal(record, n, rootOf(hash, leaves)),
    ...(type === 'sweep' && { bodyKey: toHex(bodyKey) }),
    ...(type === 'answer' && { leaves: toLeafEntries(hash, leaves) }),
    hash: toHex(chained.hash),
  });
}

function toLeafEntries(hash: Hash, leaves: ChainedRecord['leaves']) {
  const salts = saltsOf(hash, leaves);
  return leaves.entries.map((entry, at) => {
    if (isErased(entry)) return [toHex(entry)];
    return [String(entry.id), toText(entry.at), entry.mark, toHex(salts[at] ?? null)];
  });
}

/** A line of stored applications. */
export function toRowsLine(rows: readonly ExportedRow[]): string {
  return JSON.stringify({
    type: 'rows',
    rows: rows.map(({ id, firstSeen, missingSince }) => {
      return firstSeen === null ? [String(id)] : [String(id), String(firstSeen), toText(missingSince)];
    }),
  });
}
