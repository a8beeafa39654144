// The page that explains a proof: which ids it covers, and what it assumes. It shows ids, counts and times, never a person.
// `intake prove --export` writes the questions and answers themselves.

import { html } from 'hono/html';
import type { Covered } from '../../domain/coverage/position.ts';
import { type CurrentProof, type Explanation, explain } from '../../domain/evidence/record.ts';
import { formatCount, formatMoment } from '../../domain/format.ts';
import { type Html, renderDocument, renderHeadline, renderResult, renderTable } from './page.ts';

export function renderProofPage(advertiser: string, proof: CurrentProof, at: Date): Html {
  const explanation = explain(null, proof);
  const body = html`<main>
${renderVerdict(advertiser, proof)}
${renderCertificates(explanation)}
<section aria-labelledby="assumptions"><h2 id="assumptions">What it assumes</h2>
<p>Three properties of the source that no request can test for certain:</p>
<ol class="lines">${explanation.assumptions.map((line) => html`<li>${line}</li>`)}</ol></section>
<section aria-labelledby="check"><h2 id="check">Check it yourself</h2>
<p>Write the evidence to a file and check it with a program that shares no code with Intake. Keep a hash from the table of certificates somewhere else: with it you can show later that the evidence is unchanged.</p>
<p class="command"><code>intake prove --advertiser ${advertiser} --export proof.ndjson</code></p>
<p class="command"><code>intake prove --check proof.ndjson</code></p></section>
</main>`;
  return renderDocument(`Proof of ${advertiser} · Intake`, body, at);
}

/** Shown where there is no proof to explain: the account was not identified yet, or no account has this name. */
export function renderNoProofPage(isKnown: boolean, at: Date): Html {
  const why = isKnown ? 'The source has not told yet which account this is.' : 'No account has this name.';
  const body = html`<main>${renderHeadline({ name: 'fair', sign: 'i', word: 'Nothing to show' }, why)}</main>`;
  return renderDocument('Proof · Intake', body, at);
}

const moods = {
  proven: { name: 'good', sign: '✓' },
  assumed: { name: 'fair', sign: 'i' },
  unproven: { name: 'bad', sign: '!' },
} as const;

function renderVerdict(advertiser: string, { verdict, certificates }: CurrentProof): Html {
  const { certificate, risk, reason, openRanges } = verdict;
  const through = certificates.map((one) => one.completeThrough.getTime());
  const until = through.length === 0 ? '' : ` submitted before ${formatMoment(Math.min(...through))}`;
  const open = openRanges > 0 ? `: ${formatCount(openRanges, 'id range is', 'id ranges are')} not covered` : '';
  const stored = `Every application of ${advertiser}${until} is stored`;
  const sentence = {
    proven: `${stored}.`,
    assumed: risk === 'doubt' ? `${stored}, but this is in doubt: ${reason}.` : `${stored}, under one more assumption.`,
    unproven: `It is not proven that every application of ${advertiser} is stored${open}.`,
  }[certificate];
  return renderHeadline({ ...moods[certificate], word: certificate }, sentence);
}

function renderCertificates({ certificates }: Explanation): Html {
  const times = ['Ids', 'Certificate', 'Sweep began', 'Complete through'];
  return renderTable({
    id: 'certificates',
    title: 'Certificates',
    about:
      'Witnesses are cross-checks made once every range was closed, audits are requests at random places since. Both close nothing and can only contradict.',
    columns: [...times, '#Questions', '#Witnesses', '#Audits', 'Evidence'],
    rows: certificates.map((one) => [
      toText(one),
      renderResult({ word: one.certificate, mood: moods[one.certificate].name, note: one.reason }),
      formatMoment(one.startedAt),
      formatMoment(one.completeThrough),
      ...[one.questions, one.witnesses, one.audits].map((count) => formatCount(count)),
      one.evidence === null ? 'not recorded' : html`<code class="hash">${one.evidence}</code>`,
    ]),
  });
}

function toText({ low, high }: Covered): string {
  if (low === high) return `id ${low}`;
  return high === null ? `ids from ${low}` : `ids ${low} to ${high}`;
}
