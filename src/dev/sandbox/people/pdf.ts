// A page of text as PDF 1.4: the few objects that every viewer needs, and a table of where each begins.

import { zlibSync } from 'fflate';

/** A page with a compressed body. The heading stays plain, one line per text, so that its bytes can be found and filled in. */
export function renderPdf(heading: readonly string[], paragraphs: readonly string[]): Buffer {
  const lines = paragraphs.flatMap((text) => [...wrap(text), '']);
  const title = heading.map((text, row) => `/F ${row === 0 ? 18 : 10} Tf (${text}) Tj 0 -22 Td`);
  const body = `BT /F 10 Tf 14 TL 56 704 Td ${lines.map((line) => `(${toPdfText(line)}) '`).join(' ')} ET`;
  return renderObjects([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 4 0 R >> >> /Contents [5 0 R 6 0 R] >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    // fflate gives the same bytes on every machine; zlib does not.
    toStream(Buffer.from(zlibSync(Buffer.from(body, 'latin1'))).toString('latin1'), ' /Filter /FlateDecode'),
    toStream(`BT 56 780 Td ${title.join(' ')} ET`, ''),
  ]);
}

/** Removes parentheses and backslashes, which a literal PDF string cannot contain unescaped, and diacritics beyond Latin-1. */
export function toPdfText(text: string): string {
  const folded = text.replace(/[^ -ÿ]/gu, (letter) => letter.normalize('NFD').replace(/[^ -ÿ]/gu, '') || '?');
  return folded.replace(/[()\\]/g, ' ');
}

/** About the width of the page in Helvetica of 10 points. */
const lineLength = 96;

function wrap(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line && line.length + word.length >= lineLength) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}

function toStream(content: string, filter: string): string {
  return `<< /Length ${content.length}${filter} >>\nstream\n${content}\nendstream`;
}

function renderObjects(objects: readonly string[]): Buffer {
  let file = '%PDF-1.4\n';
  const places = objects.map((object, nth) => {
    const at = file.length;
    file += `${nth + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const count = objects.length + 1;
  const table = `xref\n0 ${count}\n0000000000 65535 f \n${places.join('')}`;
  return Buffer.from(
    `${file}${table}trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`,
    'latin1',
  );
}
