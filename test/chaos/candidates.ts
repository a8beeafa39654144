// Candidates share their profile with a careers site during faults, and are erased at the same time. They use the public port, a
// process beside the workers. Afterwards no table and no object holds anything of an erased candidate.

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { parseTicket } from '../../src/domain/prefill.ts';
import { createBrowser } from '../support/prefill/candidate-browser.ts';
import type { StrictS3 } from '../support/stores/strict-s3.ts';
import type { Random } from '../support/suite/random.ts';
import type { Cluster } from './cluster.ts';
import { findTables, untilDone } from './erasing.ts';
import type { Ended } from './fleet.ts';

interface Around {
  readonly board: Sandbox;
  /** The URL of the public port, and the key of the careers site. */
  readonly site: { readonly url: string; readonly key: string };
  readonly cluster: Pick<Cluster, 'query'>;
  readonly s3: Pick<StrictS3, 'objects' | 'fail'>;
  runCommand(args: readonly string[]): Promise<Ended>;
  count(what: string): void;
}

export interface Candidates {
  /** One candidate visits. Most visits are redeemed, and most candidates are erased meanwhile. False: the public port is unavailable. */
  visit(random: Random): Promise<boolean>;
  /** Finds data and resumes of erased candidates. */
  findBroken(): Promise<string[]>;
}

/** Where the careers sites of all accounts have their form. */
export const careersForm = 'https://careers.example.com/apply';

/** The key of the careers site of one account. */
export function toSiteKey(key: string, advertiserId: bigint): string {
  return `${key}-${advertiserId}`;
}

/** The settings of the process that has the public port. */
export function toCandidateSettings(board: Sandbox, sourceUrl: string, port: number): Record<string, string> {
  return {
    PORT: String(port),
    AUTH_URL: sourceUrl,
    OAUTH_CLIENT_ID: board.client.clientId,
    OAUTH_CLIENT_SECRET: board.client.clientSecret,
    OAUTH_REDIRECT_URI: `http://127.0.0.1:${port}/prefill/callback`,
    SESSION_SECRET: 'a session secret for tests',
  };
}

const longestVisitMs = 20_000;

export function createCandidates({ board, site, cluster, s3, runCommand, count }: Around): Candidates {
  /** E-mail addresses of candidates whose erase command succeeded. */
  const erased = new Set<string>();

  const comeBack = async (random: Random): Promise<{ email: string; handle: string | null } | null> => {
    const browser = createBrowser();
    const start = new URL(`${site.url}/prefill/start`);
    const { advertiserId } = random.pick(board.advertisers);
    start.search = new URLSearchParams({
      advertiser_id: String(advertiserId),
      form_url: careersForm,
      return_url: careersForm,
    }).toString();
    const back = await Promise.race([
      browser.toReturn(start.href).catch(() => null),
      sleep(longestVisitMs, null, { ref: false }),
    ]);
    const code = browser.sentTo.flatMap((url) => URL.parse(url)?.searchParams.get('code') ?? [])[0];
    const grant = board.grants().find((one) => one.code === code);
    if (grant === undefined) return null;
    return { email: grant.candidate.person.email, handle: back?.searchParams.get('prefill') ?? null };
  };
  const redeem = (handle: string) =>
    fetch(`${site.url}/prefill/redeem`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${toSiteKey(site.key, parseTicket(handle) ?? 0n)}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ handle }),
      signal: AbortSignal.timeout(longestVisitMs),
    }).catch(() => null);
  const erase = async (email: string) => {
    const { code, output } = await untilDone(() => runCommand(['erase', '--email', email, '--yes', '--json']));
    if (code !== 0) return;
    erased.add(email);
    count(output.includes('"prefills":1') ? 'candidates erased' : 'candidates erased on their way');
  };

  /** Erases a candidate who has given consent and whose profile has not arrived yet. */
  const eraseOnTheWay = async (known: number, signal: AbortSignal) => {
    for (; !signal.aborted; await sleep(50)) {
      const grant = board.grants()[known];
      if (grant !== undefined) return await erase(grant.candidate.person.email);
    }
  };

  return {
    async visit(random) {
      // The store keeps the resume, but the answer to the put is lost, and deletes fail for a while.
      if (random.chance(0.5)) {
        s3.fail('PutObject', { kind: 'answerLost' }, 12);
        s3.fail('DeleteObject', { kind: 'answer', status: 503, code: 'SlowDown' }, 4);
      }
      const isOnTheWay = random.chance(0.4);
      const slow = { kind: 'slow', on: 'prefilled', delayMs: 3_000, times: 1 } as const;
      if (isOnTheWay) for (const account of board.advertisers) account.fault(slow);
      const back = new AbortController();
      const erasing = isOnTheWay ? eraseOnTheWay(board.grants().length, back.signal) : null;
      const candidate = await comeBack(random);
      back.abort();
      await erasing;
      if (candidate === null) return false;
      count('candidates');
      const { email, handle } = candidate;
      await Promise.all([
        handle !== null && random.chance(0.7) ? redeem(handle) : null,
        random.chance(0.7) ? erase(email) : null,
      ]);
      return true;
    },
    async findBroken() {
      const gone = board.grants().filter(({ candidate }) => erased.has(candidate.person.email));
      const hashes = gone.map(({ candidate }) => {
        const sum = createHash('sha256');
        for (const chunk of candidate.resume.open()) sum.update(chunk);
        return sum.digest('hex');
      });
      const needed = await cluster.query<{ sha256: string }>(
        `SELECT sha256 FROM intake.attachments UNION SELECT sha256 FROM intake.attachment_versions
         UNION SELECT resume_sha256 FROM intake.prefills`,
      );
      const unneeded = new Set(hashes).difference(new Set(needed.map(({ sha256 }) => sha256)));
      const left = [...s3.objects.keys()].filter((key) => unneeded.has(key.slice(-64)));
      const found = await findTables(cluster, [...erased]);
      return [
        ...left.map((key) => `P17: ${key} is the resume of an erased candidate`),
        ...found.map((name) => `P17: the address of an erased candidate is in ${name}`),
      ].slice(0, 3);
    },
  };
}
