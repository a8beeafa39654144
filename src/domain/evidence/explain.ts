// Explains certificates to a person: whether everything was stored by a given day, which questions were asked, and what would have
// disproved it.

import { assumptions } from '../coverage/certificate.ts';
import { isTiled } from '../coverage/covered.ts';
import type { ExportedCertificate } from './record.ts';

/** What the sweep or an audit would have seen if an application had been missed. */
const falsifiedBy: readonly string[] = [
  'an answer that lacks an application which another answer, or an earlier sweep, has shown',
  'a second question over the same ids that shows more than the first',
  'a witness or an audit, in another shape or at another place, that shows somebody in a range that was closed',
  'echoed filters that differ from those sent, or an application outside the requested range',
  'an application submitted within the covered time that appears only afterwards',
];

/** What was asked for a certificate. */
export interface Asked {
  readonly questions: number;
  /** Applications that the answers showed, with repetitions. */
  readonly shown: number;
  readonly witnesses: number;
  readonly audits: number;
}

/** The certificates of an advertiser, in the order of their ids, and what their sweeps asked. */
export interface CurrentProof {
  readonly certificates: readonly ExportedCertificate[];
  /** Ranges of ids without a certificate, or that a later sweep could not close. */
  readonly openRanges: number;
  readonly asked: ReadonlyMap<bigint, Asked>;
}

/** The answer to "was everything stored by then?", with the level and the risk of the weakest certificate. */
export type Explanation = ReturnType<typeof explain>;

/** Explains the proof at a moment, or as it is now if `at` is null. */
export function explain(at: Date | null, { certificates, openRanges, asked }: CurrentProof) {
  const explained = certificates.map(({ last, ...one }) => ({
    ...one,
    ...(asked.get(one.sweepId) ?? { questions: 0, shown: 0, witnesses: 0, audits: 0 }),
    /** The certificate covers everything submitted up to the moment in question. */
    reaches: at === null || one.completeThrough.getTime() >= at.getTime(),
    /** The last hash, for safekeeping outside Intake; null where no evidence is kept. */
    evidence: last === null ? null : `${one.sweepId}:${last}`,
  }));
  // A gap that a later sweep left says nothing about an earlier day.
  const isWhole = isTiled(certificates) && (at !== null || openRanges === 0);
  const weakest = <T>(order: readonly T[], pick: (one: ExportedCertificate) => T) =>
    order.find((value) => certificates.some((one) => pick(one) === value));
  const certificate = weakest(['unproven', 'assumed', 'proven'] as const, (one) => one.certificate);
  const risk = weakest(['doubt', 'harmless', 'none'] as const, (one) => one.risk);
  return {
    at,
    /** Certificates that reach this moment cover every id from 1, none of them is unproven, and no range is open. */
    complete: isWhole && certificate !== 'unproven' && explained.every(({ reaches }) => reaches),
    certificate: (isWhole && certificate) || 'unproven',
    risk: (isWhole && risk) || 'doubt',
    openRanges,
    certificates: explained,
    assumptions,
    falsifiedBy,
  };
}
