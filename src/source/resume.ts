// The bytes of a candidate's resume and what its headers say of them. A cut, empty or wrong body is never taken for a resume;
// a file name is kept as a word for people and never as a path.

import { hash } from 'node:crypto';
import { fileTypeFromBuffer } from 'file-type';
import type { Resume } from '../domain/prefill.ts';
import { Trouble } from '../domain/trouble.ts';
import { readBody } from './body.ts';
import type { HttpAnswer } from './http.ts';
import { parseDeclaredName, startsAsHtml } from './parse/file-description.ts';

/** Reads a resume into memory, up to a limit. Spec: Resume (version 2). */
export async function readResume({ status, headers, body }: HttpAnswer, maxBytes: number): Promise<Resume> {
  if (status === 204) throw new Trouble('missing', 'The source has no resume (204).', { status });
  // Spec: Content-Length. A body that only ends when the connection does cannot be told from one that was cut.
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
    throw new Trouble('malformed', 'The resume came without a length.');
  }
  const { bytes, whole } = await readBody(body, headers['content-encoding'], maxBytes);
  if (!whole) throw new Trouble('mismatch', `The resume is larger than ${maxBytes} bytes.`);
  if (bytes.length === 0) throw new Trouble('malformed', 'The resume came empty.');
  const fileName = toFileName(headers['content-disposition']);
  if (isErrorPage(bytes, headers['content-type'], fileName)) {
    throw new Trouble('malformed', 'A page came in place of the resume.');
  }
  const detected = await fileTypeFromBuffer(bytes);
  return {
    bytes,
    sizeBytes: bytes.length,
    sha256: hash('sha256', bytes, 'hex'),
    fileName,
    // Spec: always application/octet-stream, which helps nobody.
    contentType: detected?.mime ?? 'application/octet-stream',
  };
}

const longestName = 150;

/** The name of a file, without any path; `resume` where there is none. */
export function toFileName(header: string | undefined): string {
  const clean = (parseDeclaredName(header) ?? '').replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '').trim();
  if (/^\.*$/.test(clean)) return 'resume';
  const [, extension = ''] = /(\.\w{1,10})$/.exec(clean) ?? [];
  return clean.length <= longestName
    ? clean
    : `${clean.slice(0, longestName - extension.length)}${extension}`.toWellFormed();
}

function isErrorPage(bytes: Buffer, contentType = '', fileName: string): boolean {
  if (/^(?:text\/html|application\/(?:json|problem\+json|xml))/i.test(contentType)) return true;
  return startsAsHtml(bytes) && !/\.html?$/i.test(fileName);
}
