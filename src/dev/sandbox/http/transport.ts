// Writes an answer to the connection as the account's choices and faults demand: framing, resets, slow bodies, truncation, wrong lengths.
// Knows Node's sockets, but not what the bytes mean.

import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Choices } from '../behaviour/choices.ts';
import type { Fault } from '../behaviour/faults.ts';
import { createFiller } from '../people/files.ts';

/** An answer before it is sent; the body is generated while it is sent. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Iterable<Buffer> | null;
}

/** Sends an answer; resolves when the last byte has been written or the connection is closed. */
export async function sendAnswer(
  outgoing: ServerResponse,
  answer: WireAnswer,
  framing: Choices['framing'],
  faults: readonly Fault[],
): Promise<void> {
  const { socket } = outgoing;
  const pick = <Kind extends Fault['kind']>(kind: Kind) =>
    faults.find((one): one is Extract<Fault, { kind: Kind }> => one.kind === kind);
  const slow = pick('slow');
  if (slow) await sleep(slow.delayMs, undefined, { ref: false });
  if (pick('hang') || !socket || socket.destroyed) return;
  const reset = pick('reset');
  if (reset?.at === 'start') return void socket.resetAndDestroy();
  if (reset?.at === 'headers') {
    socket.write(`HTTP/1.1 ${answer.status} OK\r\nContent-Ty`, () => socket.resetAndDestroy());
    return;
  }
  const cut = pick('cut');
  const wrongLength = pick('wrongLength');
  const body = toBody(answer, faults);
  const headers = { ...answer.headers, ...body.headers };
  // A status without a body has no framing to choose.
  const chosen = cut?.framing ?? (wrongLength ? 'contentLength' : framing);
  const needsWhole = chosen === 'contentLength' || cut !== undefined || reset?.at === 'body';
  const whole = needsWhole ? Buffer.concat([...body.pieces]) : null;
  if (answer.status !== 204 && answer.status !== 304) {
    if (chosen === 'contentLength')
      headers['Content-Length'] = String((whole?.length ?? 0) + (wrongLength?.byBytes ?? 0));
    if (chosen === 'closeDelimited') {
      outgoing.shouldKeepAlive = false;
      // Without this header, Node ends the body by closing the connection instead of a last chunk.
      outgoing.removeHeader('Transfer-Encoding');
    }
  }
  outgoing.writeHead(answer.status, headers);
  if (reset?.at === 'afterHeaders') return destroyAfter(outgoing);
  const keep = cut?.keep ?? (reset?.at === 'body' ? 0.5 : 1);
  const pieces = whole ? [whole.subarray(0, Math.floor(whole.length * keep))] : body.pieces;
  const drip = pick('drip');
  if (!(await writePieces(outgoing, drip ? toDrops(pieces, drip.pieceBytes) : pieces, drip?.everyMs ?? 0))) return;
  if (reset || (cut && chosen !== 'closeDelimited') || (wrongLength && wrongLength.byBytes > 0))
    return destroyAfter(outgoing);
  outgoing.end(() => {
    if (pick('closeAfter')) socket.destroy();
  });
}

function toBody(
  answer: WireAnswer,
  faults: readonly Fault[],
): { pieces: Iterable<Buffer>; headers: Record<string, string> } {
  const pieces = answer.body ?? [];
  for (const fault of faults) {
    if (fault.kind === 'flood') return { pieces: createFiller(fault.sizeBytes, '', '').open(), headers: {} };
    if (fault.kind === 'gzip')
      return { pieces: [gzipSync(Buffer.concat([...pieces]))], headers: { 'Content-Encoding': 'gzip' } };
    if (fault.kind === 'gzipBomb')
      return { pieces: [gzipSync(Buffer.alloc(fault.sizeBytes, ' '))], headers: { 'Content-Encoding': 'gzip' } };
  }
  return { pieces, headers: {} };
}

/** Returns false when the client disconnected before the end. */
async function writePieces(outgoing: ServerResponse, pieces: Iterable<Buffer>, everyMs: number): Promise<boolean> {
  for (const piece of pieces) {
    if (outgoing.destroyed) return false;
    if (piece.length > 0 && !outgoing.write(piece)) await untilWritable(outgoing);
    if (everyMs > 0) await sleep(everyMs, undefined, { ref: false });
  }
  return !outgoing.destroyed;
}

function untilWritable(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      outgoing.off('drain', go).off('close', go);
      resolve();
    };
    outgoing.on('drain', go).on('close', go);
  });
}

/** Gives the written bytes time to leave, then destroys the connection. */
function destroyAfter(outgoing: ServerResponse): void {
  outgoing.flushHeaders();
  setTimeout(() => outgoing.socket?.destroy(), 20).unref();
}

function* toDrops(pieces: Iterable<Buffer>, pieceBytes: number): Generator<Buffer> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += pieceBytes) yield piece.subarray(at, at + pieceBytes);
  }
}
