// The page that explains a proof: which ids it covers, what it assumes, and the checks that could have contradicted it. It shows ids,
// counts and times, never a person.

import { html } from 'hono/html';
import type { Covered } from '../../domain/coverage/covered.ts';
import { type Explanation, explain } from '../../domain/evidence/explain.ts';
import { type AnswerLine, countIds } from '../../domain/evidence/record.ts';
import { formatBytes, formatCount } from '../../domain/format.ts';
import type { ProofReport } from '../../store/reports/proof.ts';
import { type Html, renderAgo, renderDocument, renderHeadline, renderResult, renderTable, toUtc } from './page.ts';

/** The page of one account. */
export function renderProofPage(report: ProofReport, version: string): Html {
  const { advertiser, at, answers } = report;
  const explanation = explain(null, report);
  const all = [...answers.values()].flat();
  const witnesses = all.filter(({ purpose }) => purpose === 'witness');
  const audits = all.filter(({ type }) => type === 'audit');
  const body = html`<main>
${renderVerdict(advertiser, explanation)}
${renderCertificates(explanation)}
${renderList('assumptions', 'What it assumes', 'Three properties of the source that no request can test for certain:', explanation.assumptions)}
${renderList('falsified', 'What would have shown that somebody is missing', 'Any of these ends the proof:', explanation.falsifiedBy)}
${renderChecks(report, 'Witnesses', aboutWitnesses, witnesses)}
${renderChecks(report, 'Audits', aboutAudits, audits)}
<section aria-labelledby="check"><h2 id="check">Check it yourself</h2>
<p>Write the evidence to a file and check it with a program that shares no code with Intake. Keep a hash from the table of certificates somewhere else: with it you can show later that the evidence is unchanged.</p>
<p class="command"><code>${toExportCommand(advertiser)}</code></p>
<p class="command"><code>intake prove --check proof.ndjson</code></p></section>
</main>`;
  return renderDocument({ title: `Proof of ${advertiser} · Intake`, body, version, at, refreshSeconds: null });
}

const aboutWitnesses = 'Cross-checks made once every range was closed. They close nothing and can only contradict.';
const aboutAudits = 'Requests that the worker has made since, at random places and in both shapes.';

/** Shown where there is no proof to explain: the account was not identified yet, or no account has this name. */
export function renderNoProofPage(isKnown: boolean, version: string): Html {
  const why = isKnown ? 'The source has not told yet which account this is.' : 'No account has this name.';
  const body = html`<main>${renderHeadline({ name: 'plain', sign: 'i', word: 'Nothing to show' }, why)}</main>`;
  return renderDocument({ title: 'Proof · Intake', body, version, at: new Date(), refreshSeconds: null });
}

const moods = {
  proven: { name: 'good', sign: '✓' },
  assumed: { name: 'fair', sign: 'i' },
  unproven: { name: 'bad', sign: '!' },
} as const;

function renderVerdict(advertiser: string, { certificate, certificates, openRanges }: Explanation): Html {
  const through = certificates.map((one) => one.completeThrough.getTime());
  const until = through.length === 0 ? '' : ` submitted before ${toUtc(new Date(Math.min(...through)))}`;
  const open = openRanges > 0 ? `: ${formatCount(openRanges, 'id range is', 'id ranges are')} not covered` : '';
  const sentence = {
    proven: `Every application of ${advertiser}${until} is stored.`,
    assumed: `Every application of ${advertiser}${until} is stored, under one more assumption.`,
    unproven: `It is not proven that every application of ${advertiser} is stored${open}.`,
  }[certificate];
  return renderHeadline({ ...moods[certificate], word: certificate }, sentence);
}

function toText({ low, high }: Covered): string {
  if (low === high) return `id ${low}`;
  return high === null ? `ids from ${low}` : `ids ${low} to ${high}`;
}

function toExportCommand(advertiser: string): string {
  return `intake prove --advertiser ${advertiser} --export proof.ndjson`;
}

function toSent({ from, to, afterId, beforeId, byDate }: AnswerLine): string {
  const usual = from === undefined ? null : BigInt(from) - 1n;
  const after = afterId === undefined ? usual : afterId;
  const before = beforeId === undefined && to ? BigInt(to) + 1n : (beforeId ?? null);
  const filters = [
    ...(after === null ? [] : [`afterid=${after}`]),
    ...(before === null ? [] : [`beforeid=${before}`]),
    ...(byDate ? ['a date'] : []),
  ];
  return filters.join(' ') || 'no filter';
}

function toAnswer({ answer, ids, bytes = 0, lacking }: AnswerLine): string {
  if (answer === 'refused') return 'refused';
  if (answer === 'unanswered') return 'failed, or too large';
  const rows = ids === undefined ? 'empty' : formatCount(countIds(ids), 'row');
  const lacks = lacking === undefined ? '' : `, ${formatCount(countIds(lacking))} known ids not shown`;
  return `${rows}, ${formatBytes(bytes)}${lacks}`;
}

function renderCertificates({ certificates }: Explanation): Html {
  const times = ['Ids', 'Certificate', 'Sweep began', 'Complete through'];
  return renderTable({
    id: 'certificates',
    title: 'Certificates',
    columns: [...times, '#Questions', '#Witnesses', '#Audits', 'Evidence'],
    rows: certificates.map((one) => [
      toText(one),
      renderResult({ word: one.certificate, mood: moods[one.certificate].name, note: one.reason }),
      toUtc(one.startedAt),
      toUtc(one.completeThrough),
      ...[one.questions, one.witnesses, one.audits].map((count) => formatCount(count)),
      one.evidence === null ? 'not recorded' : html`<code class="hash">${one.evidence}</code>`,
    ]),
  });
}

function renderChecks(
  { at, advertiser }: ProofReport,
  title: string,
  about: string,
  lines: readonly AnswerLine[],
): Html {
  const id = title.toLowerCase();
  if (lines.length === 0) return renderText(id, title, `${about} None yet.`);
  const rows = lines
    .toSorted((a, b) => b.sentAt - a.sentAt)
    .map((line) => {
      const added = countIds(line.new === 'all' ? line.ids : line.new);
      const [mood, word] = added === 0 ? ['good', 'nothing new'] : ['fair', `${formatCount(added)} not stored before`];
      const result = html`<span class="badge ${mood}">${word}</span>`;
      return [renderAgo(new Date(line.sentAt), at), toSent(line), toAnswer(line), result];
    });
  const columns = ['Sent', 'Question', 'Answer', 'Result'];
  return renderTable({ id, title, about, columns, rows, all: toExportCommand(advertiser) });
}

function renderText(id: string, title: string, text: string, more = html``): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2><p>${text}</p>${more}</section>`;
}

function renderList(id: string, title: string, lead: string, lines: readonly string[]): Html {
  return renderText(id, title, lead, html`\n<ol class="lines">${lines.map((line) => html`<li>${line}</li>`)}</ol>`);
}
