// A third-party authorization server at the source's paths, with a prefill endpoint that accepts its tokens. It shows no login or
// consent page: it logs every visitor in as `ann` and grants the scope.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import Provider from 'oidc-provider';
import { listenLocally } from '../servers/local-server.ts';
import { createBrowser } from './candidate-browser.ts';

export const independentClient = { clientId: 'intake', clientSecret: 'a.secret_of-62.letters~and.digits' };
export const independentRedirectUri = 'https://intake.example.com/prefill/callback';

export interface IndependentServer extends AsyncDisposable {
  readonly url: string;
  /** The bodies of prefill requests, in order of arrival. */
  readonly asked: unknown[];
  /** Follows redirects from the authorize URL until one leads away from this server, back to the client. */
  walk(authorizeUrl: string): Promise<URL>;
}

export async function openIndependentServer(): Promise<IndependentServer> {
  const asked: unknown[] = [];
  let respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  const server = createServer((request, response) => void respond(request, response));
  const local = await listenLocally(server);
  const { url } = local;
  const provider = new Provider(url, toConfiguration());
  const authorize = provider.callback();
  respond = async (request, response) => {
    if (request.url?.startsWith('/interaction/')) {
      await provider.interactionFinished(request, response, { login: { accountId: 'ann' } });
    } else if (request.url === '/v2/applications/prefilled') {
      const token = await provider.AccessToken.find(request.headers.authorization?.replace('Bearer ', '') ?? '');
      asked.push(JSON.parse(await text(request)));
      response.writeHead(token ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ owner: token?.accountId, scope: token?.scope }));
    } else {
      await authorize(request, response);
    }
  };
  return {
    ...local,
    asked,
    async walk(authorizeUrl) {
      const browser = createBrowser();
      let at = authorizeUrl;
      for (let steps = 0; steps < 10 && at.startsWith(url); steps += 1) at = new URL(await browser.step(at), url).href;
      return new URL(at);
    },
  };
}

function toConfiguration(): object {
  return {
    clients: [
      {
        client_id: independentClient.clientId,
        client_secret: independentClient.clientSecret,
        redirect_uris: [independentRedirectUri],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_basic',
        scope: 'r_profile_apply',
      },
    ],
    scopes: ['r_profile_apply'],
    extraParams: ['advertiser_id'],
    pkce: { required: () => false },
    routes: { authorization: '/api/iam/oauth2/authorize', token: '/api/iam/oauth2/token' },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    async loadExistingGrant(context: {
      oidc: { provider: Provider; client: { clientId: string }; session: { accountId: string } };
    }) {
      const { provider, client, session } = context.oidc;
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('r_profile_apply');
      await grant.save();
      return grant;
    },
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600 },
    cookies: { keys: ['a key for tests'] },
  };
}
