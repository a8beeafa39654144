// The package has no types; these cover the few parts that tests use.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Grant {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  }
  // biome-ignore lint/style/noDefaultExport: the package exports it this way.
  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
    readonly Grant: new (of: {
      clientId: string;
      accountId: string;
    }) => Grant;
    readonly AccessToken: { find(token: string): Promise<{ accountId: string; scope: string } | undefined> };
    on(event: string, listener: (...told: unknown[]) => void): this;
  }
}
