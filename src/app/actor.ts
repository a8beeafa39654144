// Names the actor: for the audit log the user of the operating system, not a setting that anyone could change; for a lease this process.
import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';

/** User and machine. In a container the user may have a number but no name. */
export function toActor(): string {
  return `${toUser()} on ${hostname()}`;
}

/** A new name at every call, which no other process has. It shows operators who holds a lease. */
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
