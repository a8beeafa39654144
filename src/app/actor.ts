// Who runs a command, for the audit: the account of the operating system, not a setting that anyone could write.
import { hostname, userInfo } from 'node:os';

/** User and machine. A container may have a number without a name. */
export function toActor(): string {
  return `${toUser()} on ${hostname()}`;
}

function toUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
