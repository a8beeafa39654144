// Faults that replace the whole answer, the same on every path of the service.

import type { Account } from '../account/account.ts';
import type { Fault } from '../behaviour/faults.ts';
import { toError, toLoginPage, toThrottled } from './errors.ts';
import type { WireAnswer } from './transport.ts';

/** The answer that a fault sends instead of the normal one; null without such a fault. `url` is the request's URL. */
export function toMishap(account: Account, url: string, faults: readonly Fault[]): WireAnswer | null {
  const { choices } = account;
  for (const fault of faults) {
    switch (fault.kind) {
      case 'throttle':
        return toThrottled(choices, fault.retryAfter, fault.seconds, account.now());
      case 'fail':
        return toError(choices, fault.status, 'Something went wrong.');
      case 'refuse':
        return toError(choices, fault.status, 'The credential is not accepted.');
      case 'html':
        return toLoginPage();
      case 'emptyBody':
        return { status: 200, headers: { 'Content-Type': 'application/json; charset=utf-8' }, body: [] };
      case 'redirect':
        return { status: fault.status, headers: { Location: fault.location ?? url }, body: null };
    }
  }
  return null;
}
