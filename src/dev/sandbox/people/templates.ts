// Real PDF, DOCX and TXT documents with blanks of fixed width. They are created once. Filling one in takes a copy and a few writes, and
// the size of a filled file is known in advance. The templates are the same for every seed.

import { crc32 } from 'node:zlib';
import { zipSync } from 'fflate';
import { renderPdf, toPdfText } from './pdf.ts';
import { createStock, type Stock } from './people.ts';
import { createDraw, type Draw } from './random.ts';

export type Format = 'pdf' | 'docx' | 'txt';

/** The texts for the blanks of a document. */
interface Blanks {
  readonly name: string;
  readonly contact: string;
  readonly subject: string;
}

/** One document with blanks; every filled copy has the same length. */
interface Template {
  readonly sizeBytes: number;
  fill(blanks: Blanks): Buffer<ArrayBuffer>;
}

export type Templates = Readonly<Record<Format, readonly Template[]>>;

let created: Templates | undefined;

/** All templates. Created on first use (about 0.2 s) and shared by every sandbox of the process. */
export function loadTemplates(): Templates {
  created ??= createTemplates();
  return created;
}

const perFormat = 24;
const widths: Readonly<Record<keyof Blanks, number>> = { name: 48, contact: 96, subject: 64 };
const blankNames = Object.keys(widths) as (keyof Blanks)[];

function createTemplates(): Templates {
  const stock = createStock(20_24);
  const letters = Array.from({ length: perFormat }, (_, number) => inventParagraphs(stock, createDraw(7, number)));
  return {
    pdf: letters.map(createPdf),
    docx: letters.map(createDocx),
    txt: letters.map((paragraphs) => {
      return createTemplate(
        Buffer.from(`${blankNames.map(marker).join('\r\n')}\r\n\r\n${paragraphs.join('\r\n\r\n')}\r\n`),
      );
    }),
  };
}

function marker(blank: keyof Blanks): string {
  return `[[${blank}`.padEnd(widths[blank], '.');
}

function createTemplate(bytes: Buffer, encoding: BufferEncoding = 'utf8', seal = (_bytes: Buffer) => {}): Template {
  const places = blankNames.map((blank) => ({ blank, at: bytes.indexOf(marker(blank)), width: widths[blank] }));
  return {
    sizeBytes: bytes.length,
    fill(blanks) {
      const copy = Buffer.from(bytes);
      for (const { blank, at, width } of places) {
        copy.fill(0x20, at, at + width);
        copy.write(blanks[blank], at, width, encoding);
      }
      seal(copy);
      return copy;
    },
  };
}

function createPdf(paragraphs: readonly string[]): Template {
  const template = createTemplate(renderPdf(blankNames.map(marker), paragraphs), 'latin1');
  const fill = (blanks: Blanks) =>
    template.fill({
      name: toPdfText(blanks.name),
      contact: toPdfText(blanks.contact),
      subject: toPdfText(blanks.subject),
    });
  return { sizeBytes: template.sizeBytes, fill };
}

function createDocx(paragraphs: readonly string[]): Template {
  const heading = blankNames.map((blank) => wordParagraph(marker(blank)));
  const documentXml = Buffer.from(
    `${xmlDeclaration}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` +
      `${heading.join('')}${paragraphs.map(wordParagraph).join('')}</w:body></w:document>`,
  );
  // fflate writes the local time into the archive. This date is built from local parts, so the bytes are the same in every time zone.
  const options = { level: 0, mtime: new Date(2024, 0, 1, 9) } as const;
  const zip = Buffer.from(
    zipSync(
      {
        '[Content_Types].xml': Buffer.from(contentTypesXml),
        '_rels/.rels': Buffer.from(relationshipsXml),
        'word/document.xml': documentXml,
      },
      options,
    ),
  );
  const start = zip.indexOf(documentXml);
  const localHeader = zip.lastIndexOf('PK\x03\x04', start);
  const directoryEntry = zip.lastIndexOf('PK\x01\x02');
  return createTemplate(zip, 'utf8', (bytes) => {
    // The parts are stored, not deflated, so only the checksum of the filled part must be updated.
    const checksum = crc32(bytes.subarray(start, start + documentXml.length));
    bytes.writeUInt32LE(checksum, localHeader + 14);
    bytes.writeUInt32LE(checksum, directoryEntry + 16);
  });
}

const xmlDeclaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
const contentTypesXml =
  `${xmlDeclaration}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
  '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>' +
  '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>' +
  '</Types>';
const relationshipsXml =
  `${xmlDeclaration}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
  '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>' +
  '</Relationships>';

function wordParagraph(text: string): string {
  return `<w:p><w:r><w:t xml:space="preserve">${text.replaceAll('&', '&amp;')}</w:t></w:r></w:p>`;
}

function inventParagraphs(stock: Stock, draw: Draw): string[] {
  const roles = Array.from({ length: 2 + draw.below(4) }, () => {
    const years = 2024 - draw.below(12);
    return `${draw.pick(stock.jobTitles)}, ${draw.pick(stock.companies)}, ${years - 1 - draw.below(4)} to ${years}. ${draw.pick(duties)} ${draw.pick(duties)}`;
  });
  return [draw.pick(openings), ...roles, draw.pick(closings)];
}

const openings = [
  'I have followed your team for some years and would be glad to join it.',
  'A practical person who likes to see a thing finished, and to leave it better documented than it was.',
  'Twelve years on the floor and five behind a desk taught me to listen first.',
  'I am moving back to the region and looking for work that stays.',
];
const duties = [
  'Led a team of nine through two audits without a finding.',
  'Kept the roster full during three winters of short staffing.',
  'Moved the paper files of four sites into one system.',
  'Trained new starters and wrote the handbook that is still in use.',
  'Cut the time from order to delivery from nine days to four.',
  'Answered for a budget of 1.2 million dollars and came in under it.',
  'On call one week in four, with a clean safety record.',
];
const closings = [
  'Referees are happy to talk to you at any time.',
  'I can start four weeks after an offer and hold a full driver licence.',
  'Happy to talk through any of this in person.',
];
