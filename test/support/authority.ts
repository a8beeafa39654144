// Certificates of a private authority, made with openssl.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Makes `name.crt` and `name.key` of an authority that no client trusts by default. */
export function makeAuthority(name: string): void {
  openssl(
    'req',
    '-x509',
    ...key,
    '-days',
    '2',
    '-subj',
    '/CN=A private authority',
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.crt`,
  );
}

/** Makes `name.crt` and `name.key` for `localhost`, signed by the authority. */
export function makeCertificate(authority: string, name: string): void {
  openssl('req', '-new', ...key, '-subj', '/CN=localhost', '-keyout', `${name}.key`, '-out', `${name}.csr`);
  writeFileSync(`${name}.ext`, 'subjectAltName = DNS:localhost\n');
  const signed = [
    '-CA',
    `${authority}.crt`,
    '-CAkey',
    `${authority}.key`,
    '-CAcreateserial',
    '-extfile',
    `${name}.ext`,
  ];
  openssl('x509', '-req', '-days', '2', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signed);
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}
