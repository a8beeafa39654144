// Clients of the source with connections of their own: disposing them closes these.
import { createSource, type Source, type SourceOptions } from '../../../src/source/client.ts';
import { openConnections } from '../../../src/source/http.ts';
import { createPrefillSource, type PrefillSource, type PrefillSourceOptions } from '../../../src/source/prefill.ts';

/** The numbers that make the connections. */
interface Own {
  readonly connections: number;
  readonly idleTimeoutMs: number;
}

export interface OwnSourceOptions extends Partial<Own & Omit<SourceOptions, 'url' | 'connections' | 'credential'>> {
  readonly url: string;
  readonly credential: string | (() => string);
}

const usual = {
  format: 'json',
  connections: 2,
  idleTimeoutMs: 60_000,
  totalTimeoutMs: 120_000,
  listMaxBytes: 3_000_000,
  applicationMaxBytes: 16_000_000,
} as const;

export interface OwnPrefillOptions extends Own, Omit<PrefillSourceOptions, 'connections'> {}

export function openOwnSource(given: OwnSourceOptions): Source & AsyncDisposable {
  const options = { ...usual, ...given };
  const { credential } = options;
  return own(options, (connections) =>
    createSource({
      ...options,
      connections,
      credential: typeof credential === 'string' ? () => credential : credential,
    }),
  );
}

export function openOwnPrefillSource(options: OwnPrefillOptions): PrefillSource & AsyncDisposable {
  return own(options, (connections) => createPrefillSource({ ...options, connections }));
}

function own<T>({ connections: most, idleTimeoutMs }: Own, create: (own: SourceOptions['connections']) => T) {
  const connections = openConnections(most, idleTimeoutMs);
  return { ...create(connections), [Symbol.asyncDispose]: () => connections.destroy() };
}
