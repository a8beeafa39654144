// Values: BOM, UTF-16, wrong or missing charset. The bytes decide, the header helps.

import { describe, expect, test } from 'vitest';
import { decodeText } from '../../../src/source/parse/charset.ts';
import { parsePage } from '../../../src/source/parse/list.ts';

const name = 'Zoë 😀';
const json = `[{"ID":1,"FirstName":"${name}"}]`;
const xml = `<?xml version="1.0" encoding="ENCODING"?><JobApplicationsList><JobApplication><ID>1</ID><FirstName>${name}</FirstName></JobApplication></JobApplicationsList>`;

function bigEndian(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

function firstName(body: Uint8Array, contentType?: string): string | null | undefined {
  return parsePage(decodeText(body, contentType)).applications[0]?.firstName;
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
      const text = decodeText(Buffer.from(`\xef\xbb\xbf${written}`, 'latin1'), 'text/plain');
      expect(parsePage(text).applications[0]).toMatchObject({
        firstName: 'Zo\ufffd',
        rawText: expect.stringContaining('Zo\\udceb'),
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
    const page = parsePage(decodeText(body, 'application/json; charset=utf-8'));
    const [broken, whole] = page.applications;
    expect(page.rejects[0]).toMatchObject({
      raw: '{"ID":null,"FirstName":"\ufffd"}',
      rawText: '{"ID":null,"FirstName":"\\udceb"}',
    });
    expect(broken).toMatchObject({ firstName: 'Zo\ufffd', rawText: '{"ID":1,"FirstName":"Zo\\udceb"}' });
    expect(broken?.notes.map(({ field }) => field)).toEqual(['raw', 'FirstName']);
    expect(whole).toMatchObject({ firstName: 'Zoë', rawText: null, notes: [] });
  });

  /** The bytes of a word with invalid ones, as raw text keeps them. */
  const kept = (...bytes: number[]) => String.fromCharCode(...bytes.map((byte) => 0xdc00 + byte));
  const around = (bytes: readonly number[]) =>
    Buffer.concat([Buffer.from('[{"ID":1,"FirstName":"'), Buffer.from(bytes), Buffer.from('"}]')]);

  test.for([
    ['utf-8', [0xc3, 0xab, 0x20, 0xe2, 0x82, 0x41, 0x20, 0xc3, 0xab], `ë ${kept(0xe2, 0x82)}A ë`],
    ['utf-8', [0xc3, 0xab, 0xff, 0x41, 0xff], `ë${kept(0xc3, 0xab, 0xff, 0xff)}A\ufffd`],
    ['utf-8', [0xef, 0xbf, 0xbd, 0x20, 0xf0, 0x90], `\ufffd ${kept(0xf0, 0x90)}`],
    ['utf-8', [0xef, 0xbb, 0xbf, 0x20, 0xe2], `\ufeff ${kept(0xe2)}`],
    // The second byte of the first character is a backslash.
    ['shift_jis', [0x95, 0x5c, 0x20, 0x95, 0x5c, 0x95], `表 表${kept(0x95, 0x95)}`],
    ['gbk', [0xb1, 0xed, 0x20, 0xff, 0x41, 0x20, 0x81], `表 ${kept(0xff)}A ${kept(0x81)}`],
    ['euc-kr', [0xb0, 0xa1, 0x20, 0xff], `가 ${kept(0xff)}`],
    ['iso-8859-7', [0xe1, 0x20, 0xae], `α ${kept(0xae)}`],
    ['iso-2022-jp', [0x41, 0xeb], `A${kept(0xeb)}`],
    ['utf-16', [0x41, 0xeb], `A${kept(0xeb)}`],
  ] as const)('in %s with invalid bytes among others: %s', ([charset, bytes, text]) => {
    const [application] = parsePage(decodeText(around(bytes), `application/json; charset=${charset}`)).applications;
    expect(JSON.parse(application?.rawText ?? '')).toEqual({ ID: 1, FirstName: text });
    expect(application?.firstName).toBe(text.toWellFormed());
    expect(application?.notes.map(({ field }) => field)).toEqual(['raw', 'FirstName']);
  });

  test('with invalid bytes keeps what is around them, in every charset', () => {
    const charsets = ['utf-8', 'shift_jis', 'gbk', 'gb18030', 'big5', 'euc-jp', 'euc-kr', 'iso-8859-6', 'windows-1253'];
    for (const charset of charsets) {
      for (let byte = 0x80; byte <= 0xff; byte++) {
        for (const next of [0x20, 0x22, 0x30, 0x5c, 0xff]) {
          const body = Buffer.concat([Buffer.from([0x22, 0xff, byte, next]), Buffer.from(' after " \xff', 'latin1')]);
          const text = decodeText(body, `charset=${charset}`);
          expect(text, `${charset} ${byte} ${next}`).toContain(' after " ');
          expect(text.isWellFormed(), `${charset} ${byte} ${next}`).toBe(
            !new TextDecoder(charset).decode(body).includes('\ufffd'),
          );
        }
      }
    }
  });

  test('with invalid bytes of one person, everybody else keeps their name', () => {
    // The decoder makes another control character of DEL.
    const people = [`Mal${'\x7fx'.repeat(14)}","LastName":"\xff`, 'J\xc3\xb6rg\xc3\x84', 'Ann'];
    const body = `[${people.map((name, at) => `{"ID":${at + 1},"FirstName":"${name}"}`).join()}]`;
    const text = decodeText(Buffer.from(body, 'latin1'), 'application/json; charset=shift_jis');
    const names = parsePage(text).applications.map(({ firstName }) => firstName);
    expect(names.slice(1)).toEqual(['JörgÄ', 'Ann']);
  });

  test.for([
    ['JSON', '[{"ID":1,"FirstName":"A\\ud83d\x80"}]'],
    ['XML', xml.replace(name, 'A&#xd83d;\x80')],
  ] as const)(
    'in %s with an invalid byte behind half a character shows no character that nobody wrote',
    ([, written]) => {
      const [application] = parsePage(decodeText(Buffer.from(written, 'latin1'), undefined)).applications;
      expect(application?.firstName).toMatch(/^A\ufffd+$/);
      expect(application?.notes.map(({ field }) => field)).toEqual(['raw', 'FirstName']);
      expect(application?.rawText).toContain('\\udc80');
    },
  );

  test('of more than a million invalid bytes is refused before they fill the memory', () => {
    for (const piece of ['\xff', '\xff ']) {
      const body = Buffer.alloc(5_000_000, piece, 'latin1');
      expect(() => decodeText(body, undefined)).toThrow('not text in its charset');
    }
  });

  test('in UTF-16 with a lone surrogate: replaced visibly, noted and kept', () => {
    const text = '[{"ID":1,"FirstName":"Zo\ud800"}]';
    for (const body of [Buffer.from(text, 'utf16le'), bigEndian(text), bigEndian(`\ufeff${text}`)]) {
      const [application] = parsePage(decodeText(body, undefined)).applications;
      expect(application).toMatchObject({ firstName: 'Zo\ufffd', rawText: '{"ID":1,"FirstName":"Zo\\ud800"}' });
      expect(application?.notes.map(({ field }) => field)).toEqual(['raw', 'FirstName']);
    }
  });
});
