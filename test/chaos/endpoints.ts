// The endpoints of webhooks of a plan, one per account. Each is a consumer that keeps the last event id and applies each event once. At the
// end every event must have been applied, in order (P31). A fault makes them answer late, fail, lie, or not answer at all.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { listenLocally } from '../support/servers/local-server.ts';
import { webhookSecret } from '../support/servers/receiver.ts';
import type { Cluster } from './cluster.ts';
import { within } from './settings.ts';

/** What the endpoints do. `lying`: they take an event and answer 500, so that it comes again. */
export const endpointFaults = ['late', 'failing', 'throttling', 'resetting', 'lying', 'down', 'gone'] as const;
export type EndpointMode = 'open' | (typeof endpointFaults)[number];

export interface Endpoints extends AsyncDisposable {
  readonly port: number;
  mode: EndpointMode;
  /** The `webhooks` of an account in ADVERTISERS_FILE. */
  toSettings(account: string): object[];
  /** What was wrong with messages so far. */
  takeOdd(): string[];
  /** Waits until every event was applied; returns what was not. */
  findBroken(stage: EndpointsStage): Promise<string[]>;
}

/** The parts of the stage that they use. */
interface EndpointsStage {
  readonly cluster: Pick<Cluster, 'query'>;
  readonly accounts: readonly object[];
  runCommand(args: readonly string[]): Promise<unknown>;
}

/** The messages that an endpoint applied, as event, application and type. */
interface Consumer {
  last: bigint;
  readonly applied: string[];
  readonly seen: Set<string>;
}

export async function openEndpoints(): Promise<Endpoints> {
  const consumers = new Map<string, Consumer>();
  const odd: string[] = [];
  const server = createServer((request, response) => void take(request, response).catch(() => response.destroy()));
  server.on('connection', (socket) => {
    if (endpoints.mode === 'down') socket.destroy();
  });
  const local = await listenLocally(server);

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const { mode } = endpoints;
    if (mode === 'down' || mode === 'resetting') return void request.socket.resetAndDestroy();
    if (mode === 'throttling') return void response.writeHead(429, { 'retry-after': '1' }).end();
    if (mode === 'failing') return void response.writeHead(500).end();
    if (mode === 'gone') return void response.writeHead(410).end();
    if (mode === 'late') await sleep(3_000);
    const isApplied = apply(request.url?.split('/').at(-1) ?? '', body, request.headers as Record<string, string>);
    response.writeHead(isApplied ? (mode === 'lying' ? 500 : 204) : 401).end();
  }

  function apply(account: string, body: string, headers: Record<string, string>): boolean {
    try {
      new Webhook(webhookSecret).verify(body, headers);
    } catch {
      odd.push(`P31: a message to ${account} is not signed as it should be`);
      return false;
    }
    // Ids may exceed 2^53.
    const [, event = '0', application] = /"event_id":(\d+),"advertiser_id":\d+,"application_id":(\d+)/.exec(body) ?? [];
    const what = `${event} ${application} ${JSON.parse(body).type}`;
    const consumer = consumers.get(account) ?? { last: 0n, applied: [], seen: new Set() };
    consumers.set(account, consumer);
    if (BigInt(event) > consumer.last) {
      consumer.last = BigInt(event);
      consumer.applied.push(what);
      consumer.seen.add(what);
    } else if (!consumer.seen.has(what)) odd.push(`P31: event ${what} of ${account} came after ${consumer.last}`);
    return true;
  }

  const endpoints: Endpoints = {
    ...local,
    mode: 'open',
    toSettings: (account) => [{ url: `${local.url}/hook/${account}`, secret: webhookSecret }],
    takeOdd: () => odd.splice(0),
    async findBroken({ cluster, runCommand, accounts }) {
      await cluster.query(`UPDATE intake.webhooks SET next_at = now() WHERE next_at > now()`);
      for (const [at] of accounts.entries()) await runCommand(['retry', '--webhook', `account-${at + 1}`]);
      const compare = async () => {
        const rows = await cluster.query<{ account: string; what: string }>(
          `SELECT v.name AS account, concat_ws(' ', e.event_id, e.application_id, e.type) AS what
           FROM intake.events e JOIN intake.advertisers v USING (advertiser_id) ORDER BY e.advertiser_id, e.event_id`,
        );
        const events = Map.groupBy(rows, ({ account }) => account);
        return [...events].flatMap(([account, all]) => {
          const applied = consumers.get(account)?.applied ?? [];
          const wrong = all.findIndex(({ what }, index) => applied[index] !== what);
          return wrong < 0 && applied.length === all.length
            ? []
            : [
                `P31: ${account} applied ${applied.length} of ${all.length} events; the first difference is at ${wrong}`,
              ];
        });
      };
      let differences: string[] = [];
      await within(60_000, async () => {
        differences = await compare();
        return differences.length === 0;
      });
      return [...differences, ...endpoints.takeOdd()];
    },
  };
  return endpoints;
}
