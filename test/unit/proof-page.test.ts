// The page of a proof.
import { expect, test } from 'vitest';
import type { AnswerLine, ExportedCertificate } from '../../src/domain/evidence/record.ts';
import { renderProofPage } from '../../src/web/admin/proof-page.ts';

const certificate: ExportedCertificate = {
  ...{ low: 1n, high: null, certificate: 'proven', risk: 'none', reason: 'every id range was read', sweepId: 1n },
  ...{ startedAt: new Date(0), completeThrough: new Date(0), last: '0'.repeat(64) },
};

test('every command of the page names the account', async () => {
  const many = (type: AnswerLine['type'], purpose?: 'witness') =>
    Array.from({ length: 150 }, (_, n): AnswerLine => ({ n, type, ...(purpose && { purpose }), sentAt: n, tookMs: 5 }));
  const answers = [...many('answer', 'witness'), ...many('audit')];
  const report = {
    ...{ at: new Date(0), advertiser: 'fern', advertiserId: 7n, certificates: [certificate], openRanges: 0 },
    ...{ answers: new Map([[1n, answers]]) },
  };
  const page = String(await renderProofPage(report, '1'));
  expect(page).toMatch(/And 50 more witnesses[\s\S]*And 50 more audits/);
  const commands = [...page.matchAll(/intake prove [^<]*--export[^<]*/g)].map(([command]) => command);
  expect(commands).toHaveLength(3);
  expect(new Set(commands)).toEqual(new Set(['intake prove --advertiser fern --export proof.ndjson']));
});
