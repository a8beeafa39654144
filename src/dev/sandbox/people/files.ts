// A file of an account. Its name, type and size are known at once; its bytes are generated on each request.
// No bytes are kept: the same file gives the same bytes every time.

import { createHash, hash as hashOnce } from 'node:crypto';
import type { Person } from './people.ts';
import type { Draw } from './random.ts';
import type { Format, Templates } from './templates.ts';

export interface BoardFile {
  readonly fileName: string;
  readonly contentType: string;
  readonly sizeBytes: number;
  /** The bytes, in pieces. */
  open(): Iterable<Buffer>;
}

const contentTypes: Readonly<Record<Format, string>> = {
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  txt: 'text/plain',
};

/** A document about a person. The draw decides its format and template, so equal draws give equal bytes. */
export function inventFile(
  templates: Templates,
  draw: Draw,
  person: Person,
  title: string,
  subject: string,
): BoardFile {
  const format = draw.pick<Format>(title === 'Resume' ? ['pdf', 'pdf', 'docx'] : ['pdf', 'docx', 'docx', 'txt']);
  const template = draw.pick(templates[format]);
  const name = `${person.firstName} ${person.lastName}`;
  const blanks = { name, contact: `${person.email}  ${person.phone}  ${person.suburb}`, subject };
  return {
    fileName: `${title}_${name.replace(/[^A-Za-z]+/g, '_')}.${format}`,
    contentType: contentTypes[format],
    sizeBytes: template.sizeBytes,
    open: () => [template.fill(blanks)],
  };
}

/** A file with given bytes. */
export function toFile(bytes: Buffer, fileName: string, contentType: string): BoardFile {
  return { fileName, contentType, sizeBytes: bytes.length, open: () => [bytes] };
}

/** A file of any size that is never in memory as a whole. */
export function createFiller(sizeBytes: number, fileName: string, contentType: string): BoardFile {
  return {
    fileName,
    contentType,
    sizeBytes,
    *open() {
      const piece = Buffer.alloc(65_536, 'The quick brown fox jumps over the lazy dog. ');
      for (let left = sizeBytes; left > 0; left -= piece.length)
        yield left < piece.length ? piece.subarray(0, left) : piece;
    },
  };
}

/** Hex digest of a file's bytes. */
export function digestFile(file: BoardFile, algorithm: 'md5' | 'sha1' | 'sha256'): string {
  const pieces = file.open();
  // One call is three times as fast as create, update, digest; most files have one piece.
  if (Array.isArray(pieces) && pieces.length === 1) return hashOnce(algorithm, pieces[0], 'hex');
  const hash = createHash(algorithm);
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}
