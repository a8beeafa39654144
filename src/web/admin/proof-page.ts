// The page that explains a proof: which ids were closed, the questions that closed them, the checks that could have
// contradicted it, and what it assumes. It shows ids, counts and times, never a person.

import { html } from 'hono/html';
import { type Covered, coveredOf } from '../../domain/coverage/covered.ts';
import { type Explanation, explain } from '../../domain/evidence/explain.ts';
import { findQuestionsAbout, type PictureColumn, rangeOfLine, toColumns } from '../../domain/evidence/picture.ts';
import { type AnswerLine, countIds } from '../../domain/evidence/record.ts';
import { formatBytes, formatCount } from '../../domain/format.ts';
import type { ProofReport } from '../../store/reports/proof.ts';
import { renderAgo, renderDocument, renderHeadline, renderResult, renderTable, toUtc } from './page.ts';
import { type Html, px } from './svg-chart.ts';

/** The page of one account; with the questions about an id, unless it is null. */
export function renderProofPage(
  report: ProofReport,
  id: bigint | null,
  names: readonly string[],
  version: string,
): Html {
  const { advertiser, at, certificates, answers, density } = report;
  const explanation = explain(null, report);
  const all = [...answers.values()].flat();
  const witnesses = all.filter(({ purpose }) => purpose === 'witness');
  const audits = all.filter(({ type }) => type === 'audit');
  const body = html`<main>
${renderVerdict(advertiser, explanation)}
${renderNames(names, advertiser)}
${renderPicture(advertiser, toColumns(certificates, audits, density))}
${id === null ? '' : renderQuestions(report, id)}
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
export function renderNoProofPage(names: readonly string[], isKnown: boolean, version: string): Html {
  const why = isKnown ? 'The source has not told yet which account this is.' : 'No account has this name.';
  const headline = renderHeadline({ name: 'plain', sign: 'i', word: 'Nothing to show' }, why);
  const body = html`<main>${headline}${renderNames(names, null)}</main>`;
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

function renderNames(names: readonly string[], current: string | null): Html {
  if (names.length < 2 && current !== null) return html``;
  return html`<nav class="names" aria-label="Advertisers">${names.map(
    (name) => html`<a href="${toHref(name)}"${name === current ? html` aria-current="true"` : ''}>${name}</a> `,
  )}</nav>`;
}

function toHref(advertiser: string, id?: bigint): string {
  const query = new URLSearchParams({ advertiser, ...(id !== undefined && { id: String(id) }) });
  return `/proof?${query}${id === undefined ? '' : '#questions'}`;
}

/** The meaning of each colour, for the legend. */
const states: Record<PictureColumn['state'], string> = {
  closed: 'closed: read to its end',
  open: 'open: not read to its end',
};

/** In units of the image. */
const size = { width: 960, height: 136, applications: 64, gap: 6, closed: 22, audits: 14 };

/** Every part has the same width, however many ids it holds. */
function renderPicture(advertiser: string, columns: readonly PictureColumn[]): Html {
  const width = size.width / columns.length;
  const most = Math.max(1, ...columns.map(({ applications }) => applications));
  const used = [...new Set(columns.map(({ state }) => state))];
  const applications = columns.reduce((sum, column) => sum + column.applications, 0);
  const open = columns.filter(({ state }) => state === 'open').length;
  const summary = `${formatCount(applications)} applications along the axis of ids. ${open === 0 ? 'Every part of it is closed' : `${formatCount(open)} of ${formatCount(columns.length)} parts are open`}.`;
  return html`<section aria-labelledby="axis"><h2 id="axis">The axis of ids</h2>
<figure class="panel axis-of-ids"><figcaption><p class="figure">From id 1, at the left, to ids that do not exist yet. Bars: how many applications. Band: whether their ids were read to the end. Dots: audits. Each part links to the questions behind it.</p>
<ul class="legend blocks">${used.map((state) => html`<li class="state-${state}">${states[state]}</li>`)}</ul></figcaption>
<svg class="chart" viewBox="0 0 ${size.width} ${size.height}" role="group" aria-labelledby="axis-title axis-desc">
<title id="axis-title">The axis of ids</title><desc id="axis-desc">${summary}</desc>
${columns.map((column, nth) => renderColumn(advertiser, column, { left: nth * width, width, most }))}
${renderEnds(columns, width)}
</svg></figure></section>`;
}

function renderColumn(
  advertiser: string,
  column: PictureColumn,
  { left, width, most }: { readonly left: number; readonly width: number; readonly most: number },
): Html {
  const { state, applications, audits, from } = column;
  const told = [
    `${toText(coveredOf(column))}: ${formatCount(applications, 'application')}`,
    states[state],
    ...(audits === 0 ? [] : [`audited ${audits === 1 ? 'once' : `${formatCount(audits)} times`}`]),
  ].join('; ');
  const height = (applications / most) * size.applications;
  const bandY = size.applications + size.gap;
  const auditY = bandY + size.closed + size.gap + size.audits / 2;
  return html`<a href="${toHref(advertiser, from)}" aria-label="${told}"><title>${told}</title>
<rect class="hit" x="${px(left)}" y="0" width="${px(width)}" height="${size.height}"/>
${height === 0 ? '' : html`<rect class="bar series-1" x="${px(left + width * 0.1)}" y="${px(size.applications - height)}" width="${px(width * 0.8)}" height="${px(height)}"/>`}
<rect class="band state-${state}" x="${px(left)}" y="${bandY}" width="${px(width)}" height="${size.closed}"/>
${audits === 0 ? '' : html`<circle class="dot series-2" cx="${px(left + width / 2)}" cy="${auditY}" r="${px(Math.min(4, 2 + audits / 4))}"/>`}</a>
`;
}

/** The lowest and the highest id that are stored, outliers aside. */
function renderEnds(columns: readonly PictureColumn[], width: number): Html {
  const inner = columns.filter(({ isEdge }) => !isEdge);
  const [first, last] = [inner[0], inner.at(-1)];
  if (first === undefined || last === undefined) return html``;
  const y = size.height - 6;
  return html`<text class="tick start" x="${px(columns.indexOf(first) * width)}" y="${y}">id ${first.from}</text>
<text class="tick value" x="${px(size.width - width)}" y="${y}">id ${last.to}</text>`;
}

function toText({ low, high }: Covered): string {
  if (low === high) return `id ${low}`;
  return high === null ? `ids from ${low}` : `ids ${low} to ${high}`;
}

function renderQuestions(report: ProofReport, id: bigint): Html {
  const title = `Questions about id ${id}`;
  const covering = report.certificates.find(({ low, high }) => low <= id && (high === null || id <= high));
  const about = covering === undefined ? [] : findQuestionsAbout(report.answers.get(covering.sweepId) ?? [], id);
  if (about.length === 0) {
    const why = covering === undefined ? 'No sweep has read it to its end.' : 'It was read before evidence was kept.';
    return renderText('questions', title, why);
  }
  return renderTable({
    id: 'questions',
    title,
    columns: ['Line', 'Sent', 'Question', 'Answer', 'What followed'],
    rows: about.map((line) => [`${line.n}`, ...toCells(report, line), toConsequence(line)]),
    all: toExportCommand(report.advertiser),
  });
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

const rules = {
  known: 'the page had room and showed nothing new',
  empty: 'empty',
  single: 'one id',
} as const;

function toConsequence(line: AnswerLine): string {
  const range = rangeOfLine(line);
  if (line.closed === undefined || range === null) return 'closed nothing; other questions followed';
  return `closed ${toText(coveredOf(range))}: ${rules[line.closed]}`;
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

function renderChecks(report: ProofReport, title: string, about: string, answers: readonly AnswerLine[]): Html {
  const id = title.toLowerCase();
  if (answers.length === 0) return renderText(id, title, `${about} None yet.`);
  const rows = answers
    .toSorted((a, b) => b.sentAt - a.sentAt)
    .map((line) => {
      const added = countIds(line.new === 'all' ? line.ids : line.new);
      const [mood, word] = added === 0 ? ['good', 'nothing new'] : ['fair', `${formatCount(added)} not stored before`];
      return [...toCells(report, line), html`<span class="badge ${mood}">${word}</span>`];
    });
  const columns = ['Sent', 'Question', 'Answer', 'Result'];
  return renderTable({ id, title, about, columns, rows, all: toExportCommand(report.advertiser) });
}

/** When a question was sent, the question, and its answer. */
function toCells({ at }: ProofReport, line: AnswerLine): (Html | string)[] {
  return [renderAgo(new Date(line.sentAt), at), toSent(line), toAnswer(line)];
}

function renderText(id: string, title: string, text: string, more = html``): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2><p>${text}</p>${more}</section>`;
}

function renderList(id: string, title: string, lead: string, lines: readonly string[]): Html {
  return renderText(id, title, lead, html`\n<ol class="lines">${lines.map((line) => html`<li>${line}</li>`)}</ol>`);
}
