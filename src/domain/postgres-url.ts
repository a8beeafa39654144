// Reads a Postgres address as psql does: an empty host, the folder of a Unix socket in its place, and parameters that come first.

/** Captures user, host and port, the path, and the parameters. */
const pattern = /^postgres(?:ql)?:\/\/([^/?]*)(\/[^?]*)?(?:\?(.*))?$/s;

/** Null for another text, and for a lone % in host or path, which cannot be decoded. */
export function parsePostgresUrl(text: string) {
  const [match, server = '', path = '', query] = pattern.exec(text) ?? [];
  if (match === undefined) return null;
  const authority = server.replace(/^.*@/s, '');
  const parameters = new URLSearchParams(query);
  try {
    const name = decodeURIComponent(authority.replace(/:\d*$/, ''));
    return {
      parameters,
      /** A name, an address or the folder of a Unix socket; empty where none is named. */
      host: parameters.get('host') ?? name,
      port: parameters.get('port') ?? /:(\d+)$/.exec(authority)?.[1] ?? '5432',
      /** Empty where none is named: the server then takes the user's name. */
      database: decodeURIComponent(path.slice(1)),
      mode: parameters.get('sslmode') ?? { true: 'require', false: 'disable' }[parameters.get('ssl') ?? ''] ?? null,
      root: parameters.get('sslrootcert') || null,
    };
  } catch {
    return null;
  }
}
