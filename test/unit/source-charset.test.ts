// Values: BOM, UTF-16, wrong or missing charset. The bytes decide, the header helps.

import { describe, expect, test } from 'vitest';
import { decodeText } from '../../src/source/parse/charset.ts';
import { parsePage } from '../../src/source/parse/list.ts';

const name = 'Zoë 😀';
const json = `[{"ID":1,"FirstName":"${name}"}]`;
const xml = `<?xml version="1.0" encoding="ENCODING"?><JobApplicationsList><JobApplication><ID>1</ID><FirstName>${name}</FirstName></JobApplication></JobApplicationsList>`;

function bigEndian(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

function firstName(body: Uint8Array, contentType?: string): string | null | undefined {
  const { text, bytesAsText } = decodeText(body, contentType);
  return parsePage(text, bytesAsText).applications[0]?.firstName;
}

describe('a body', () => {
  test.for([
    ['UTF-8 without a charset', Buffer.from(json), undefined],
    ['UTF-8 as declared', Buffer.from(json), 'application/json; charset=utf-8'],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${json}`), 'application/json'],
    ['UTF-8 declared as Latin-1', Buffer.from(json), 'application/json; charset=iso-8859-1'],
    ['UTF-8 declared as nonsense', Buffer.from(json), 'application/json; charset=x-nonsense'],
    ['UTF-8 XML that calls itself Latin-1', Buffer.from(xml.replace('ENCODING', 'iso-8859-1')), 'application/xml'],
    ['UTF-8 XML with a byte order mark', Buffer.from(`\ufeff${xml}`), 'application/xml'],
    ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${json}`, 'utf16le'), 'application/json; charset=utf-8'],
    ['big-endian UTF-16 with a byte order mark', bigEndian(`\ufeff${json}`), undefined],
    ['UTF-16 without a mark', Buffer.from(json, 'utf16le'), 'application/json'],
    ['big-endian UTF-16 without a mark', bigEndian(json), undefined],
    ['UTF-16 XML', Buffer.from(`\ufeff${xml.replace('ENCODING', 'utf-16')}`, 'utf16le'), 'application/xml'],
  ] as const)('in %s is read', ([, body, contentType]) => {
    expect(firstName(body, contentType)).toBe(name);
  });

  test.for([
    ['by its header', '[{"ID":1,"FirstName":"Zo\xeb \x80"}]', 'application/json; charset="Windows-1252"'],
    [
      'by its XML declaration',
      xml.replace('ENCODING', 'windows-1252').replace(name, 'Zo\xeb \x80'),
      'application/xml; charset=utf-8',
    ],
  ] as const)('in a national charset is read %s', ([, latin1, contentType]) => {
    expect(firstName(Buffer.from(latin1, 'latin1'), contentType)).toBe('Zoë €');
  });

  test('with a byte order mark and a byte that is not UTF-8 is read, and its bytes are kept', () => {
    for (const written of ['[{"ID":1,"FirstName":"Zo\xeb"}]', xml.replace(name, 'Zo\xeb')]) {
      const { text, bytesAsText } = decodeText(Buffer.from(`\xef\xbb\xbf${written}`, 'latin1'), 'text/plain');
      expect(parsePage(text, bytesAsText).applications[0]).toMatchObject({
        firstName: 'Zo\ufffd',
        rawText: expect.stringContaining('Zo\xeb'),
      });
    }
    expect(firstName(Buffer.from('\xef\xbb\xbf[{"ID":1,"FirstName":"Zo\xeb"}]', 'latin1'), 'x; charset=latin1')).toBe(
      'Zoë',
    );
  });

  test('with bytes that are not what it says: replaced visibly, noted, and the bytes kept, for that application only', () => {
    const body = Buffer.concat([
      Buffer.from('[{"ID":1,"FirstName":"Zo'),
      Buffer.from([0xeb]),
      Buffer.from('"},{"ID":2,"FirstName":"Zoë"},{"ID":null,"FirstName":"'),
      Buffer.from([0xeb]),
      Buffer.from('"}]'),
    ]);
    const { text, bytesAsText } = decodeText(body, 'application/json; charset=utf-8');
    const page = parsePage(text, bytesAsText);
    const [broken, whole] = page.applications;
    expect(page.rejects[0]).toMatchObject({
      raw: '{"ID":null,"FirstName":"\ufffd"}',
      rawText: '{"ID":null,"FirstName":"\xeb"}',
    });
    expect(broken).toMatchObject({ firstName: 'Zo\ufffd', rawText: '{"ID":1,"FirstName":"Zo\xeb"}' });
    expect(broken?.notes.map(({ field }) => field)).toEqual(['raw']);
    expect(whole).toMatchObject({ firstName: 'Zoë', rawText: null, notes: [] });
  });
});
