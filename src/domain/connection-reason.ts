// Why a connection failed, in the same words for the database, the source and the storage.

/** The code, with what it means where its name does not say so. */
export function toConnectionReason(code: string): string {
  const meaning = meanings.find(([codes]) => codes.test(code))?.[1];
  return meaning === undefined ? code : `${meaning}, ${code}`;
}

const meanings: readonly (readonly [RegExp, string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'the name does not resolve'],
  // A server without TLS answers the handshake with something else.
  [/^(EPROTO|ERR_SSL_)/, 'it does not speak TLS, or another version of it'],
];
