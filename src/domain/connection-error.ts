// Explains failed connections, in the same words for the database, the source and the storage.

/** The error's code, with an explanation where the code does not speak for itself. */
export function toConnectionReason(code: string): string {
  const meaning = meanings.find(([codes]) => codes.test(code))?.[1];
  return meaning === undefined ? code : `${meaning}, ${code}`;
}

const meanings: readonly (readonly [RegExp, string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN|ENODATA|ESERVFAIL|ETIMEOUT)$/, 'the name does not resolve'],
  // A server without TLS answers the handshake with something else.
  [/^(EPROTO|ERR_SSL_)/, 'it does not speak TLS, or another version of it'],
];

/** OpenSSL's codes for a certificate that is not trusted. */
const certificateCodes = /^(CERT_|CRL_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|INVALID_|PATH_LENGTH|ERROR_IN_)/;

/**
 * Explains what is wrong with the server's certificate, by the error's code; null for a code about something else. `remedy` says in which
 * setting the certificate of its authority belongs.
 */
export function toCertificateProblem(code: string, server: string, remedy: string): string | null {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH') {
    return `the certificate of ${server} is for another name; use the name in the certificate`;
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `the certificate of ${server} is not valid at this time; renew it, or set this machine's clock right`;
  }
  if (!certificateCodes.test(code)) return null;
  return `the certificate of ${server} is signed by an authority that is not known here; name its certificate ${remedy}`;
}

export function toHostAndPort({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}
