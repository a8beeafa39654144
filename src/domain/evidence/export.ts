// The lines of an exported proof around the lines of its sweeps: the certificates, and the stored applications. docs/proof-format.md defines
// them.

import type { Conclusion } from '../coverage/certificate.ts';
import type { Covered } from '../coverage/covered.ts';
import { toHex } from './record.ts';

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
    format: 2,
    advertiser: String(advertiserId),
    exportedAt: exportedAt.getTime(),
    certificates: certificates.map(({ low, high, certificate, risk, reason, ...one }) => ({
      low: String(low),
      high: high === null ? null : String(high),
      certificate,
      risk,
      reason,
      sweep: String(one.sweepId),
      startedAt: one.startedAt.getTime(),
      completeThrough: one.completeThrough.getTime(),
      last: one.last && toHex(one.last),
    })),
  });
}

/** A line of stored applications. */
export function toRowsLine(rows: readonly ExportedRow[]): string {
  const text = (seconds: bigint | null) => (seconds === null ? null : String(seconds));
  return JSON.stringify({
    type: 'rows',
    rows: rows.map(({ id, firstSeen, missingSince }) =>
      firstSeen === null ? [String(id)] : [String(id), text(firstSeen), text(missingSince)],
    ),
  });
}
