// What candidates have allowed: codes that are exchanged once, and the tokens they became. In memory, by the sandbox's clock.

import { randomBytes } from 'node:crypto';
import type { Account } from '../account/account.ts';
import type { Candidate } from '../account/candidates.ts';

/** One permission, from its code to its token. */
export interface Grant {
  readonly account: Account;
  readonly candidate: Candidate;
  readonly redirectUri: string;
  readonly code: string;
  readonly issuedAt: number;
  token: string | null;
  tokenAt: number;
}

/** The permissions of a sandbox. */
export interface Grants {
  issueCode(account: Account, candidate: Candidate, redirectUri: string): Grant;
  /** Makes a code into a token, once. A second try ends what the first one gave. */
  exchange(code: string, redirectUri: string): Grant | null;
  /** Who a token speaks for, while it lives. */
  find(token: string): Grant | null;
  /** All that were ever given, for a test that looks for them where they must not be. */
  issued(): readonly Grant[];
}

/** No permissions yet. */
export function createGrants(now: () => number): Grants {
  const grants: Grant[] = [];
  const spent = new Set<string>();
  return {
    issueCode(account, candidate, redirectUri) {
      const grant = {
        account,
        candidate,
        redirectUri,
        code: toCode(account),
        issuedAt: now(),
        token: null,
        tokenAt: 0,
      };
      grants.push(grant);
      return grant;
    },
    exchange(code, redirectUri) {
      const grant = grants.find((one) => one.code === code);
      if (!grant) return null;
      if (spent.has(code)) {
        grant.token = null;
        return null;
      }
      spent.add(code);
      // Spec silent: how long a code lives, and what becomes of one that was presented with another address.
      if (now() - grant.issuedAt >= grant.account.choices.codeLifetimeSeconds * 1000) return null;
      if (grant.redirectUri !== redirectUri) return null;
      grant.token = randomBytes(24).toString('base64url');
      grant.tokenAt = now();
      return grant;
    },
    find(token) {
      const grant = grants.find((one) => one.token !== null && one.token === token);
      if (!grant) return null;
      return now() - grant.tokenAt < grant.account.choices.tokenLifetimeSeconds * 1000 ? grant : null;
    },
    issued: () => grants,
  };
}

function toCode({ choices }: Account): string {
  const code = randomBytes(18).toString('hex');
  return choices.codeShape === 'plain' ? code : `${code}+a/b==%41`;
}
