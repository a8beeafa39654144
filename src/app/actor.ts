// Who acts: for the audit the account of the operating system, not a setting that anyone could write; for a lease this very process.
import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';

/** User and machine. A container may have a number without a name. */
export function toActor(): string {
  return `${toUser()} on ${hostname()}`;
}

/** A name that no other process bears, nor this one when it is asked again: it tells whose a lease is, to people as well. */
export function toOwner(role: string): string {
  return `${role} on ${hostname()} (${process.pid}, ${randomUUID().slice(0, 8)})`;
}

function toUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
