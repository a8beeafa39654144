// Rules of extracts that need no store: ids of snapshots, what may be deleted, which months an application may have left.
import { describe, expect, it } from 'vitest';
import { parseAnswer } from '../../src/domain/extract/fingerprints.ts';
import {
  type ExtractFile,
  findUnused,
  type Manifest,
  parseManifest,
  toMonthRanges,
  toSnapshotId,
} from '../../src/domain/extract/manifest.ts';

const toFile = (path: string, more: Partial<ExtractFile> = {}): ExtractFile => ({
  ...{ path, view: 'attachments', advertiser_id: '1', partition: '2026-07', rows: 1, bytes: 1, sha256: '' },
  ...{ min_id: '5', max_id: '9' },
  ...more,
});

it('the id of a snapshot rises also when the clock was set back', () => {
  const first = toSnapshotId(new Date('2026-11-18T02:41:00.999Z'), '');
  expect(first).toBe('20261118T024100999Z');
  expect(toSnapshotId(new Date('2026-11-17T00:00:00Z'), first)).toBe('20261118T024101000Z');
  expect(toSnapshotId(new Date('2026-11-18T02:41:00.999Z'), first)).toBe('20261118T024101000Z');
});

it.each(['[]', 'null', '{', '{"format":2}', '{"format":1,"files":[],"advertisers":[]}'])(
  'a manifest is refused: %s',
  (text) => {
    expect(() => parseManifest(text, 'snapshots/x.json')).toThrow('snapshots/x.json at the target');
  },
);

it('an extract deletes neither what a kept snapshot uses, nor what a later one has written, nor what is not its own', () => {
  const [old, own, later] = ['20261101T000000000Z', '20261102T000000000Z', '20261103T000000000Z'];
  const kept = {
    snapshot_id: own,
    files: [toFile(`data/jobs/1/${own}.parquet`), toFile(`data/attachments/1/2026-07/${old}.parquet`)],
  };
  const paths = [
    ...[old, own, later].map((id) => `snapshots/${id}.json`),
    ...[old, own, later].map((id) => `data/jobs/1/${id}.parquet`),
    `data/attachments/1/2026-07/${old}.parquet`,
    ...['data/jobs/1/mine.parquet', 'snapshots/notes.json', 'people/README.md'],
  ];
  expect(findUnused(paths, [kept as unknown as Manifest], own)).toEqual([
    `snapshots/${old}.json`,
    `data/jobs/1/${old}.parquet`,
  ]);
});

it('the ranges of months are the widest of all views, without summaries and people', () => {
  const files = [
    toFile('a', { min_id: '9007199254740993', max_id: '9007199254740999' }),
    toFile('b', { view: 'applications_anonymous', min_id: '7', max_id: '8' }),
    toFile('c', { view: 'events', partition: null }),
    toFile('d', { view: 'applications', partition: '07', min_id: '1', max_id: '2' }),
  ];
  expect(toMonthRanges(files)).toEqual([{ month: '2026-07', low: 7n, high: 9007199254740999n }]);
});

describe('the answer of a copy', () => {
  const header = 'STEP,WIDTH,ADVERTISER_ID,FROM_ID,APPLICATIONS,FINGERPRINT';

  it('is read as CSV, with any quotes, line ends and case of names', () => {
    const text = `${header}\r\n2,65536,1,0,0,0\r\n2,256,1,"512",3,99999999999999999999\r\n`;
    expect(parseAnswer(text)).toEqual({
      step: 2,
      asked: [{ step: 2, advertiserId: 1n, fromId: 0n, width: 65536n, applications: 0n, fingerprint: '0' }],
      ranges: [
        { step: 2, advertiserId: 1n, fromId: 512n, width: 256n, applications: 3n, fingerprint: '99999999999999999999' },
      ],
    });
  });

  it.each([
    'a,b\n1,2',
    'Error: there is no table of this name',
    'WIDTH,ADVERTISER_ID,FROM_ID,APPLICATIONS,FINGERPRINT\n256,1,512,3,9',
    `${header}\n4,256,1,512,3,9`,
    `${header}\n2,256,1,512,3,9\n1,256,1,512,3,9`,
  ])('is refused: %s', (text) => {
    expect(parseAnswer(text)).toBeNull();
  });

  it('of an empty copy has no rows', () => {
    expect(parseAnswer('')).toEqual({ step: 1, asked: null, ranges: [] });
  });
});
