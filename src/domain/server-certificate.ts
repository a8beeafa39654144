// What is wrong with a server's certificate, in the same words for the database, the source and the storage.

/** Codes of OpenSSL for a certificate that is not believed. */
const certificateCodes = /^(CERT_|CRL_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|INVALID_|PATH_LENGTH|ERROR_IN_)/;

/** By the error's code; null where it is about something else. `remedy` says where the authority's certificate is named. */
export function toCertificateProblem(code: string, server: string, remedy: string): string | null {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH') {
    return `the certificate of ${server} is for another name; use the name that it bears`;
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `the certificate of ${server} is not valid at this time; renew it, or set this machine's clock right`;
  }
  if (!certificateCodes.test(code)) return null;
  return `the certificate of ${server} is signed by an authority that is not known here; name its certificate ${remedy}`;
}
