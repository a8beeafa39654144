// The consents of candidates: codes, which can be exchanged once, and their tokens. In memory, with the sandbox's clock.

import { randomBytes } from 'node:crypto';
import type { Account } from '../account/account.ts';
import type { Candidate } from '../account/candidates.ts';

/** One consent, with its code and its token. */
export interface Grant {
  readonly account: Account;
  readonly candidate: Candidate;
  readonly redirectUri: string;
  readonly code: string;
  readonly issuedAt: number;
  token: string | null;
  tokenAt: number;
}

export type Grants = ReturnType<typeof createGrants>;

/** The consents of a sandbox. Starts without any. */
export function createGrants(now: () => number) {
  const grants: Grant[] = [];
  const spent = new Set<string>();
  return {
    issueCode(account: Account, candidate: Candidate, redirectUri: string): Grant {
      const grant: Grant = {
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
    /** Exchanges a code for a token, once. A second attempt revokes the token of the first. */
    exchange(code: string, redirectUri: string): Grant | null {
      const grant = grants.find((one) => one.code === code);
      if (!grant) return null;
      if (spent.has(code)) {
        grant.token = null;
        return null;
      }
      spent.add(code);
      // Spec silent: how long a code is valid, and what happens to a code that is sent with another redirect URI.
      if (now() - grant.issuedAt >= grant.account.choices.codeLifetimeSeconds * 1000) return null;
      if (grant.redirectUri !== redirectUri) return null;
      grant.token = randomBytes(24).toString('base64url');
      grant.tokenAt = now();
      return grant;
    },
    /** The grant of a token that has not expired. */
    find(token: string): Grant | null {
      const grant = grants.find((one) => one.token !== null && one.token === token);
      if (!grant) return null;
      return now() - grant.tokenAt < grant.account.choices.tokenLifetimeSeconds * 1000 ? grant : null;
    },
    /** Every grant ever issued, for tests that search for leaked codes and tokens. */
    issued: (): readonly Grant[] => grants,
  };
}

function toCode({ choices }: Account): string {
  const code = randomBytes(18).toString('hex');
  return choices.codeShape === 'plain' ? code : `${code}+a/b==%41`;
}
