// Explains certificates to a person: whether everything was stored by a given day, which questions were asked, and what would have
// disproved it.

import { assumptions, type Conclusion, weakestOf } from '../coverage/certificate.ts';
import { isTiled } from '../coverage/position.ts';
import type { ExportedCertificate } from './record.ts';

/** What the sweep or an audit would have seen if an application had been missed. */
const falsifiedBy: readonly string[] = [
  'an answer that lacks an application which another answer, or an earlier sweep, has shown',
  'a second question over the same ids that shows more than the first',
  'a witness or an audit, in another shape or at another place, that shows somebody in a range that was closed',
  'echoed filters that differ from those sent, or an application outside the requested range',
  'an application submitted within the covered time that appears only afterwards',
];

export interface Asked {
  readonly questions: number;
  /** Applications that the answers showed, with repetitions. */
  readonly shown: number;
  readonly witnesses: number;
  readonly audits: number;
}

/** What all sweeps together say about an account: the row of the view completeness, which the status and every command show. */
export interface Verdict extends Conclusion {
  /** Ranges of ids without a certificate, or that a later sweep could not close, and ids that cannot be read. */
  readonly openRanges: number;
  /** The last evidence hash of each sweep behind it, as SWEEP:HASH. */
  readonly evidence: readonly string[];
}

/** The verdict, the certificates in the order of their ids, and what their sweeps asked. */
export interface CurrentProof {
  readonly verdict: Verdict;
  readonly certificates: readonly ExportedCertificate[];
  readonly asked: ReadonlyMap<bigint, Asked>;
}

const unproven = { certificate: 'unproven', risk: 'doubt' } as const;

export type Explanation = ReturnType<typeof explain>;

/** Explains the proof at a moment, or as it is now if `at` is null. */
export function explain(at: Date | null, { verdict, certificates, asked }: CurrentProof) {
  const explained = certificates.map(({ last, ...one }) => ({
    ...one,
    ...(asked.get(one.sweepId) ?? { questions: 0, shown: 0, witnesses: 0, audits: 0 }),
    /** The certificate covers everything submitted up to the moment in question. */
    reaches: at === null || one.completeThrough.getTime() >= at.getTime(),
    /** The last hash, for safekeeping outside Intake; null where no evidence is kept. */
    evidence: last === null ? null : `${one.sweepId}:${last}`,
  }));
  const { openRanges } = verdict;
  // A gap that a later sweep left says nothing about an earlier day.
  const ofCertificates = isTiled(certificates) ? weakestOf(certificates) : undefined;
  const { certificate, risk } = (at === null ? verdict : ofCertificates) ?? unproven;
  const isOpen = at === null && openRanges > 0;
  return {
    at,
    /** Certificates that reach this moment cover every id from 1, none of them is unproven, and no range is open. */
    complete: certificate !== 'unproven' && !isOpen && explained.every(({ reaches }) => reaches),
    certificate,
    risk,
    openRanges,
    certificates: explained,
    assumptions,
    falsifiedBy,
  };
}
