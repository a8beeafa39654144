// The package brings no types; these are of the few parts that a test uses.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Grant {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  }
  // biome-ignore lint/style/noDefaultExport: so the package has it.
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
