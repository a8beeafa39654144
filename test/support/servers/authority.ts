// Certificates of a private authority, made with openssl.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';

/** Makes `name.crt` and `name.key` of an authority that no client trusts by default. */
export function makeAuthority(name: string): void {
  openssl(`req -x509 ${newKey} -days 2 -subj /CN=private-authority -keyout ${name}.key -out ${name}.crt`);
}

/** Makes `name.crt` and `name.key` for `localhost`, signed by the authority. */
export function makeCertificate(authority: string, name: string): void {
  openssl(`req -new ${newKey} -subj /CN=localhost -keyout ${name}.key -out ${name}.csr`);
  writeFileSync(`${name}.ext`, 'subjectAltName = DNS:localhost\n');
  const signer = `-CA ${authority}.crt -CAkey ${authority}.key -CAcreateserial`;
  openssl(`x509 -req -days 2 -in ${name}.csr -out ${name}.crt ${signer} -extfile ${name}.ext`);
}

function openssl(line: string): void {
  execFileSync('openssl', line.split(' '), { stdio: 'pipe' });
}
