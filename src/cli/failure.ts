// One form for every error that a user sees: what happened, what was kept, what to do next, and the exit code.
// Turns errors of the lower layers into that form. A stack is shown for unexpected errors only.

import { toSafeError } from '../domain/safe-error.ts';
import {
  CertificateTrouble,
  type Dependency,
  LaneHeld,
  LeaseLost,
  SchemaTrouble,
  SettingTrouble,
  SweepDropped,
  Trouble,
  type TroubleKind,
  WrongStore,
} from '../domain/trouble.ts';

/** The exit codes that scripts and supervisors rely on. */
export const exitCodes = {
  done: 0,
  unexpected: 1,
  /** Also a wrong configuration. */
  usage: 2,
  /** Finished, but some items failed, or coverage of the account is unproven or in doubt. */
  incomplete: 3,
  /** Also credentials of another advertiser. */
  refused: 4,
  /** Also interrupted: run it again. */
  temporary: 5,
  /** Another live process holds the same lane. */
  held: 6,
  schema: 7,
  unhealthy: 8,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Thrown by a command that knows what the user should do. Where `next` is empty, the report refers to the help of the command. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  readonly next: string;
  readonly kept: string;
  /** Further members for `--json`. */
  readonly details: object;

  constructor(
    exitCode: ExitCode,
    happened: string,
    next: string,
    { kept = unchanged, details = {}, cause }: { kept?: string; details?: object; cause?: unknown } = {},
  ) {
    super(happened, { cause });
    this.exitCode = exitCode;
    this.next = next;
    this.kept = kept;
    this.details = details;
  }
}

/** A wrong command line, or a setting that keeps a command from starting. */
export class Misuse extends Failure {
  constructor(happened: string, next = '') {
    super(exitCodes.usage, happened, next);
  }
}

/** For a file that the user has named and that cannot be used: why, or the error of an attempt to use it. */
export function toFileMisuse(file: string, why: unknown): Misuse {
  const reason = typeof why === 'string' ? why : `it cannot be used (${(why as NodeJS.ErrnoException).code})`;
  return new Misuse(`${file}: ${reason}.`, 'Name another file, or correct its permissions.');
}

/** The reason of an aborted signal: the user, the supervisor or a closed pipe stopped the command. */
export class Interrupted extends Error {
  constructor(by: string) {
    super(`Interrupted by ${by}`);
  }
}

export function toFailure(error: unknown, signal: AbortSignal): Failure {
  if (error instanceof Failure) return error;
  if (signal.aborted && isAbort(error, signal)) {
    const by = signal.reason instanceof Interrupted ? signal.reason.message : 'Interrupted';
    return new Failure(exitCodes.temporary, by, again, { kept: committed });
  }
  if (error instanceof Trouble) {
    const [usual, advice] = kinds[error.kind];
    const local = error.kind === 'local' && error.at ? localAdvice[error.at] : undefined;
    const known = reports.find(([type]) => error instanceof type);
    const [, code, next, kept = committed] = known ?? [Trouble, usual, local ?? advice];
    return new Failure(code, error.message, error instanceof SchemaTrouble ? error.next : next, { kept, cause: error });
  }
  // By name: importing its class would load the whole configuration before every --help.
  if (error instanceof Error && error.name === 'ConfigProblems' && 'problems' in error) {
    const next = 'Set what is named above; docs/configuration.md explains every setting.';
    return new Failure(exitCodes.usage, error.message, next, { details: { problems: error.problems } });
  }
  const next = 'This is a bug in Intake. Run the command again with LOG_LEVEL=debug and report what it prints.';
  const happened = `Unexpected: ${toSafeError(error).message}`;
  return new Failure(exitCodes.unexpected, happened, next, { kept: committed, cause: error });
}

const unchanged = 'Nothing was started or changed.';
const committed = 'Everything committed so far.';
const again = 'Run the same command again: it continues from there.';

const ownStore =
  'Correct BLOBS_URL, or mount the folder that it names. If this database takes the place of the owner, stop the owner and run intake adopt-store.';

type Report = readonly [type: new (...args: never[]) => Trouble, ExitCode, next: string, kept?: string];

/** Troubles whose class decides the report. For all others, their kind and their dependency do. */
const reports: readonly Report[] = [
  [SchemaTrouble, exitCodes.schema, ''],
  [SettingTrouble, exitCodes.usage, 'Correct the setting; intake doctor checks all of them.', unchanged],
  [CertificateTrouble, exitCodes.usage, 'Correct the setting or the certificate, then run the same command again.'],
  [LaneHeld, exitCodes.held, 'Let that process finish, or stop it, then run the same command again.', unchanged],
  [LeaseLost, exitCodes.temporary, again],
  [SweepDropped, exitCodes.temporary, 'Run the same command again: it reads the range from its beginning.'],
  [WrongStore, exitCodes.usage, ownStore, 'Everything committed so far. Nothing in that store was written or deleted.'],
];

const kinds: Record<TroubleKind, readonly [code: ExitCode, next: string]> = {
  unreachable: [exitCodes.temporary, 'Check SOURCE_URL and the network, then run the same command again.'],
  throttled: [exitCodes.temporary, 'Run the same command again later, or lower SOURCE_RATE.'],
  refused: [exitCodes.refused, 'Check SOURCE_CREDENTIAL, and that it belongs to SOURCE_URL.'],
  missing: [exitCodes.usage, 'Check SOURCE_URL: the address without /v1.'],
  malformed: [exitCodes.temporary, 'Check SOURCE_URL. If it is right, try later: the API itself did not answer.'],
  mismatch: [exitCodes.refused, 'Check that SOURCE_CREDENTIAL belongs to the configured advertiser.'],
  local: [exitCodes.temporary, 'Check the database, the disk and the storage, then run the same command again.'],
};

const localAdvice: Partial<Record<Dependency, string>> = {
  database: 'Check the database and DATABASE_URL, then run the same command again.',
  storage: 'Check the storage and its free space, BLOBS_URL and S3_ENDPOINT, then run the same command again.',
};

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return (
    error === signal.reason || (error instanceof Error && (error.name === 'AbortError' || isAbort(error.cause, signal)))
  );
}
