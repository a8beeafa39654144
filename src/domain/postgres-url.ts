// Reads a Postgres address as psql does: an empty host, the folder of a Unix socket in its place, and parameters that come first.

/** Captures user, host and port, the path, and the parameters. */
const pattern = /^postgres(?:ql)?:\/\/([^/?]*)(\/[^?]*)?(?:\?(.*))?$/s;

/** Null for another text, and for a lone % in host or path, which cannot be decoded. */
export function parsePostgresUrl(text: string) {
  const [match, server = '', path = '', query] = pattern.exec(text) ?? [];
  const authority = server.replace(/^.*@/s, '');
  const [name, database] = [authority.replace(/:\d*$/, ''), path.slice(1)].map(decode);
  if (match === undefined || name === undefined || database === undefined) return null;
  const parameters = new URLSearchParams(query);
  return {
    parameters,
    /** A name, an address or the folder of a Unix socket; empty where none is named. */
    host: parameters.get('host') ?? name,
    port: parameters.get('port') ?? /:(\d+)$/.exec(authority)?.[1] ?? '5432',
    /** Empty where none is named: the server then takes the user's name. */
    database,
    mode: parameters.get('sslmode') ?? { true: 'require', false: 'disable' }[parameters.get('ssl') ?? ''] ?? null,
    root: parameters.get('sslrootcert') || null,
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
