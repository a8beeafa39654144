// The lines of an exported proof around the lines of its sweeps: the certificates, and the stored applications. docs/proof-format.md defines
// them.

import type { Conclusion } from '../coverage/certificate.ts';
import type { Covered } from '../coverage/covered.ts';

/** A certificate, and the last hash of the evidence behind it; null where none is kept. */
export interface ExportedCertificate extends Covered, Conclusion {
  readonly sweepId: bigint;
  readonly startedAt: Date;
  readonly completeThrough: Date;
  readonly last: string | null;
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
    certificates: certificates.map(({ low, high, certificate, risk, reason, last, ...one }) => ({
      low: String(low),
      high: high === null ? null : String(high),
      certificate,
      risk,
      reason,
      sweep: String(one.sweepId),
      startedAt: one.startedAt.getTime(),
      completeThrough: one.completeThrough.getTime(),
      last,
    })),
  });
}

/** A line of stored applications: id, first seen and missing since, in seconds since 1970. Of an erased one only its id is left. */
export function toRowsLine(rows: readonly (readonly (string | null)[])[]): string {
  return JSON.stringify({ type: 'rows', rows });
}
