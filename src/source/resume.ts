// Reads a candidate's resume and its headers. A truncated, empty or wrong body is never accepted as a resume.
// The file name is for display only; it is never used as a path.

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
  // Spec: Content-Length. A body that ends with the connection cannot be distinguished from a truncated one.
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
    throw new Trouble('malformed', 'The resume has no length (Content-Length).');
  }
  const { bytes, whole } = await readBody(body, headers['content-encoding'], maxBytes);
  if (!whole) throw new Trouble('mismatch', `The resume is larger than ${maxBytes} bytes.`);
  if (bytes.length === 0) throw new Trouble('malformed', 'The resume is empty.');
  const fileName = toFileName(headers['content-disposition']);
  if (isErrorPage(bytes, headers['content-type'], fileName)) {
    throw new Trouble('malformed', 'The source sent a page instead of the resume.');
  }
  const detected = await fileTypeFromBuffer(bytes);
  return {
    bytes,
    sizeBytes: bytes.length,
    sha256: hash('sha256', bytes, 'hex'),
    fileName,
    // Spec: the header is always application/octet-stream, so the type is detected from the bytes.
    contentType: detected?.mime ?? 'application/octet-stream',
  };
}

const longestName = 150;

/** The file name without its path; `resume` when the header has no usable name. */
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
