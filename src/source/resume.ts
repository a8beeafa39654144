// Reads a candidate's resume and its headers. A truncated, empty or wrong body is never accepted as a resume.

import type { Spool } from '../domain/blob.ts';
import type { Resume } from '../domain/prefill.ts';
import { Trouble } from '../domain/trouble.ts';
import { inflate } from './body.ts';
import type { HttpAnswer } from './http.ts';
import { describeFile, startsAsHtml } from './parse/file-description.ts';

/** Reads a resume into the spool, up to a limit. Spec: Resume (version 2). */
export async function readResume(
  { status, headers, isFramed, body }: HttpAnswer,
  spool: Pick<Spool, 'open'>,
  maxBytes: number,
): Promise<Resume> {
  if (status === 204) throw new Trouble('missing', 'The source has no resume (204).', { status });
  // Spec: Content-Length.
  if (!isFramed) throw new Trouble('malformed', 'The resume has no length (Content-Length).');
  await using stack = new AsyncDisposableStack();
  const spooled = stack.use(spool.open());
  for await (const chunk of inflate(body, headers['content-encoding'])) {
    if (spooled.sizeBytes + chunk.length > maxBytes) {
      throw new Trouble('mismatch', `The resume is larger than ${maxBytes} bytes.`);
    }
    await spooled.write(chunk);
  }
  const { body: kept, facts, head } = await spooled.finish();
  if (facts.sizeBytes === 0) throw new Trouble('malformed', 'The resume is empty.');
  const { contentType, detectedType, fileName } = await describeFile(headers, head);
  const isPage = /^(?:text\/html|application\/(?:json|problem\+json|xml))/i.test(contentType ?? '');
  if (isPage || (startsAsHtml(head) && !/\.html?$/i.test(fileName ?? ''))) {
    throw new Trouble('malformed', 'The source sent a page instead of the resume.');
  }
  const owned = stack.move();
  return {
    ...facts,
    body: kept,
    fileName: fileName ?? 'resume',
    // Spec: the header is always application/octet-stream, so the type is detected from the first bytes.
    contentType: detectedType ?? 'application/octet-stream',
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
