// Lists every guard against concurrency bugs, with a scenario that breaks without it. The product's code runs unchanged: most guards are
// removed from the statements on their way to the server, the others by changing the server's answers.
import { type Bounds, type Explored, explore, fromText, play, type Scenario } from './explorer.ts';
import { type ScenarioName, scenarios } from './scenarios/all.ts';
import { Unplayable } from './schedule.ts';
import type { Stage } from './stage.ts';

export interface Guard {
  readonly name: string;
  /** The module of src/store that contains the guard. */
  readonly from: string;
  readonly scenario: ScenarioName;
  /** Removes the guard until `exploreWithout` resets the stage. */
  readonly takeOut: (stage: Stage) => Taken;
  /** The first schedules already break without the guard, so `npm test` covers it. */
  readonly isQuick: boolean;
  /** The start of a schedule that breaks without the guard, where a search takes minutes. If it breaks nothing, the search runs. */
  readonly at?: string;
}

/** Counts the statements or answers from which the guard was removed. */
export interface Taken {
  count: number;
}

/** A guard in a statement: `by` replaces `out`. With `after`, only if the previous statement on the connection matches it. */
const guard = (
  name: string,
  from: string,
  scenario: ScenarioName,
  out: RegExp,
  by = '',
  after: RegExp = /^/,
): Guard => ({
  ...{ name, from, scenario, isQuick: false },
  takeOut(stage) {
    const taken = { count: 0 };
    stage.gate.rewrite = (sql, before) => {
      const without = after.test(before) ? sql.replace(out, by) : sql;
      if (without !== sql) taken.count++;
      return without;
    };
    return taken;
  },
});
/** A retry after a conflict: the proxy gives the client another error instead, so the client does not retry. */
const repetition = (name: string, from: string, scenario: ScenarioName, client: string): Guard => ({
  ...{ name, from, scenario, isQuick: false },
  takeOut(stage) {
    stage.gate.hidesConflictsOf = client;
    return { count: 1 };
  },
});
/** A query that a transaction repeats under its locks: the stage returns the rows that were read before the transaction. */
const secondLook = (name: string, from: string, scenario: ScenarioName, statement: RegExp): Guard => ({
  ...{ name, from, scenario, isQuick: false },
  takeOut(stage) {
    const taken = { count: 0 };
    stage.answersAsBefore = { statement, onAnswer: () => void taken.count++ };
    return taken;
  },
});
const known = (at: string, one: Guard): Guard => ({ ...one, at });
const quick = (...of: Parameters<typeof guard>): Guard => ({ ...guard(...of), isQuick: true });

const lockOfLanes = /SELECT pg_advisory_xact_lock(_shared)?\(1, [^;]+/;

export const guards: readonly Guard[] = [
  quick('FOR SHARE of the fence', 'leases', 'two-writers', /(?<=AND owner = \$4) FOR SHARE/),
  guard(
    'epoch in the fence',
    'leases',
    'same-owner',
    /AND epoch = \$3 (?=AND owner = \$4 FOR SHARE)/,
    'AND $3::bigint > 0 ',
  ),
  guard('owner in the fence', 'leases', 'epoch-twice', /AND owner = \$4(?= FOR SHARE)/, "AND $4::text <> ''"),
  known(
    'a12.time1.b1',
    guard('SKIP LOCKED of a claim of a lane', 'leases', 'heartbeat', /(?<=FOR UPDATE OF l) SKIP LOCKED/),
  ),
  guard('SKIP LOCKED of a heartbeat', 'leases', 'heartbeat', /(?<=owner = \$5 FOR UPDATE) SKIP LOCKED/),
  guard('ON CONFLICT of a new lease', 'leases', 'maintenance', /ON CONFLICT \(name, lane\) DO NOTHING/),
  guard('the rest after a task', 'leases', 'maintenance', /\(l\.done_at IS NULL OR.*'1 minute'\)/, 'true'),
  known('source1.a13.source1.b11.a14', guard('the lock of the lanes', 'leases', 'two-lanes', lockOfLanes, 'SELECT 1')),
  known(
    'source1.b4.source1.a11',
    guard(
      'the recent pages of the other lane',
      'update',
      'two-lanes',
      /(?<=SELECT 1 FROM intake\.recent_pages r\s+WHERE) /,
      ' false AND ',
    ),
  ),
  guard('the number of the last change', 'update', 'one-lane', /observed_seq > \$3 OR/, 'false OR'),
  known(
    'delete2.fetch12.delete14.delete!',
    guard('the token of a delete', 'blobs', 'orphan', /WHEN \(b\.delete_until .*?'\) THEN 'deleting'/),
  ),
  guard(
    'the lock of the application of a completed file',
    'complete-download',
    'ready',
    /(?<=ORDER BY application_id) FOR NO KEY UPDATE(?=\s+\)\s+DELETE FROM intake\.downloads)/,
  ),
  guard(
    'ON CONFLICT of a stored blob',
    'complete-download',
    'ready-equal',
    /ON CONFLICT \(advertiser_id, sha256\) DO UPDATE SET\s+state = CASE WHEN b\.state = 'infected'.*delete_until = NULL/s,
    '',
  ),
  guard(
    'the token of a completed download',
    'complete-download',
    'replaced',
    /AND d\.lease_token = ended\.token/,
    'AND ended.token IS NOT NULL',
  ),
  guard(
    'SKIP LOCKED of a claim of downloads',
    'download-queue',
    'batch',
    /(?<=\(SELECT size FROM share\) FOR UPDATE) SKIP LOCKED/,
  ),
  guard('SKIP LOCKED of the heartbeat of downloads', 'download-queue', 'batch', /(?<=FOR UPDATE OF d) SKIP LOCKED/),
  guard(
    'a claim is taken back when its file changes',
    'update',
    'replaced',
    /UPDATE intake\.downloads d SET lease_token = NULL/,
    'UPDATE intake.downloads d SET lease_token = d.lease_token',
  ),
  guard(
    'infected bytes are known when they come again',
    'complete-download',
    'infected',
    /state = CASE WHEN b\.state = 'infected' THEN b\.state ELSE 'stored' END/,
    "state = 'stored'",
  ),
  guard('an erased application stays so', 'tombstones', 'erase-page', /(?<=WHERE) NOT a\.is_request/, ' false'),
  guard('the lock of the lanes, for an erasure', 'leases', 'erase-quarantine', lockOfLanes, 'SELECT 1'),
  guard('tombstones of elements', 'tombstones', 'erase-quarantine', /(?<=JOIN intake\.erasures e ON) /, ' false AND '),
  guard(
    'a profile is kept only if nobody erased its person',
    'tombstones',
    'erase-prefill',
    /OR \(a\.is_nameless AND/,
    '$& false AND',
  ),
  guard('the lock of the lanes, for a profile', 'leases', 'erase-prefill', lockOfLanes, 'SELECT 1'),
  guard(
    'a profile is redeemed once',
    'prefills',
    'erase-prefill',
    /AND outcome = 'prefilled' (?=AND NOT \(expires_at)/,
    '',
  ),
  guard(
    'a state is taken once',
    'prefills',
    'state-twice',
    /s\.used_at IS NULL(?= AND NOT f\.is_expired)/,
    'f.used_at IS NULL',
  ),
  guard(
    'an erasure knows the resumes of the person',
    'find-and-erase',
    'erase-resume',
    /UNION SELECT resume_sha256 FROM intake\.prefills WHERE .*(?=\) AS f)/s,
  ),
  guard(
    'bytes of a kept resume are needed',
    'delete-blobs',
    'lapse-resume',
    /OR EXISTS \(SELECT 1 FROM intake\.prefills p WHERE p\.advertiser_id = \$1 AND p\.resume_sha256 = b\.sha256\)/,
  ),
  guard(
    'a closed erasure is not opened by its files',
    'erasure-jobs',
    'erase-twice',
    /(?<=SET step = 'waiting'.*) AND step <> 'closed'/s,
  ),
  guard(
    'an erasure is closed once',
    'erasure-jobs',
    'erase-twice',
    /(?<=step = 'closed', closed_at.*) AND step <> 'closed'/s,
  ),
  guard('an id is pinned once', 'advertisers', 'pinned', / AND advertiser_id IS NULL/),
  guard('ON CONFLICT of a confirmed cursor', 'cursors', 'cursors', /ON CONFLICT \(advertiser_id\) DO NOTHING/),
  guard(
    'ON CONFLICT of a raised cursor',
    'cursors',
    'cursors',
    /ON CONFLICT \(advertiser_id\) DO UPDATE\s+SET after_id.*$/s,
  ),
  known(
    'c4.b3.a4.reader3',
    quick('the lock of the events', 'events', 'events', /pg_advisory_xact_lock\(2, [^)]+\)\)/, '1'),
  ),
  guard(
    'a slot begins where the last one ends',
    'rate-limit',
    'slots',
    /WHEN p\.next_at BETWEEN/,
    'WHEN false AND p.next_at BETWEEN',
  ),
  quick('a longer Retry-After stays', 'advertisers', 'slots', /AND NOT coalesce\(.*, false\)/s, ''),
  known(
    'fetch3.delete6.page1',
    guard(
      'claims that announced freed bytes are taken back',
      'download-queue',
      'infected',
      /(?<=AND sha256 = ANY \(\$2::text\[\]\) AND lease_token IS NOT NULL)/,
      ' AND false',
    ),
  ),
  known(
    'fetch3.page26.delete1',
    guard(
      'an infected blob that came again is deleted again',
      'complete-download',
      'flagged',
      /deleted_at = CASE WHEN b\.state <> 'infected' THEN b\.deleted_at END, delete_token = NULL, delete_until = NULL/,
      'deleted_at = b.deleted_at',
    ),
  ),
  known(
    'delete2.time1.fetch12.delete1',
    guard(
      'the confirmation asks for its token, and whether it has expired',
      'delete-blobs',
      'orphan-late',
      /b\.delete_token = \$4(?= AND b\.state = 'deleting')|b\.delete_token = \$4 AND \(b\.state = 'infected' OR .*?'\)\)/gs,
      '$4::uuid IS NOT NULL',
    ),
  ),
  known(
    'page11.run1',
    guard(
      'applications are locked before a lost claim marks its bytes as infected',
      'blobs',
      'lifted',
      /(?<=UNION SELECT unnest\(\$3::bigint\[\]\)\)\s+ORDER BY application_id) FOR NO KEY UPDATE/,
      '',
    ),
  ),
  // The order of locks, which `DESC` reverses.
  guard(
    'the order of locks of a completion',
    'complete-download',
    'order-page',
    /ORDER BY application_id(?= FOR NO KEY UPDATE\s+\)\s+DELETE FROM intake\.downloads)/,
    '$& DESC',
  ),
  guard(
    'the order of locks of a page',
    'update',
    'order-page',
    /(?<=ANY \(\$2::bigint\[\]\)\s+)ORDER BY application_id(?= FOR NO KEY UPDATE$)/,
    '$& DESC',
  ),
  guard(
    'the order of locks of applications that are back',
    'commit-page',
    'order-back',
    /(?<=AS missing FROM intake\.applications\s+WHERE .*)ORDER BY application_id(?= FOR NO KEY UPDATE)/s,
    '$& DESC',
  ),
  guard(
    'the order of locks of an erasure',
    'find-and-erase',
    'order-erase',
    /ORDER BY application_id(?= LIMIT \$3::bigint FOR UPDATE)/,
    '$& DESC',
  ),
  guard(
    'the order of locks of a retry',
    'ready',
    'order-retry',
    /(?<=ANY \(\$2::bigint\[\]\)\s+)ORDER BY application_id(?= FOR NO KEY UPDATE$)/,
    '$& DESC',
  ),
  guard(
    'the order of locks of lost bytes',
    'blobs',
    'order-lost',
    /(?<=UNION SELECT unnest\(\$3::bigint\[\]\)\)\s+)ORDER BY application_id(?= FOR NO KEY UPDATE)/,
    '$& DESC',
  ),
  guard(
    'ON CONFLICT of announced bytes',
    'blobs',
    'ready-equal',
    /ON CONFLICT \(advertiser_id, sha256\) DO UPDATE SET\s+intended_at.*?(?=RETURNING sha256, CASE)/s,
    '',
  ),
  guard(
    'the token of announced bytes',
    'blobs',
    'replaced',
    /AND d\.lease_token = i\.token/,
    'AND i.token IS NOT NULL',
  ),
  guard(
    'the lock of the trust in Hash',
    'complete-download',
    'trust',
    /(?<=FROM intake\.hash_trust WHERE advertiser_id = \$1) FOR NO KEY UPDATE/,
  ),
  guard('the lock of bytes that are dropped', 'delete-blobs', 'drop', /(?<=ORDER BY sha256) FOR UPDATE/),
  guard(
    'verify leaves a delete to the run that has it in hand',
    'delete-blobs',
    'orphan-lifted',
    /(?<=AND NOT EXISTS .*) AND \(b\.delete_until [^']*'[^']*'\) IS NOT TRUE(?= AND b\.intended_at)/s,
  ),
  guard('SKIP LOCKED of bytes to delete', 'delete-blobs', 'deleters', /(?<=LIMIT 10 FOR UPDATE) SKIP LOCKED/),
  guard(
    'SKIP LOCKED of downloads that are brought forward',
    'download-queue',
    'forward',
    /(?<=FOR UPDATE OF d) SKIP LOCKED/,
  ),
  guard('the lock of the lanes, for coverage', 'leases', 'coverage', lockOfLanes, 'SELECT 1'),
  guard('ON CONFLICT of a new account', 'advertisers', 'new-account', /ON CONFLICT \(name\) DO NOTHING/),
  guard(
    'the lock of the application whose screens are read again',
    'stored-files',
    'reparse-missing',
    /(?<=AND application_id = \$2) FOR NO KEY UPDATE/,
  ),
  guard('the lock of an erasure', 'find-and-erase', 'erase-file', /(?<=LIMIT \$3::bigint) FOR UPDATE/),
  guard('the lock of the second check', 'find-and-erase', 'erase-again', /(?<=ORDER BY application_id) FOR UPDATE$/),
  guard('ON CONFLICT of an adopted object', 'verify-blobs', 'adopted', /ON CONFLICT DO NOTHING(?= RETURNING 1)/),
  guard('ON CONFLICT of the blob store', 'store-owner', 'first-use', /(?<=DEFAULT VALUES) ON CONFLICT DO NOTHING/),
  guard(
    'the plan of a process that takes a blob store',
    'store-owner',
    'first-use',
    /(?<=SET next_identity = \$2) WHERE next_identity IS NOT DISTINCT FROM \$1/,
    " WHERE $1::text IS NULL OR $1::text <> ''",
  ),
  guard(
    'the confirmed identity is the planned one',
    'store-owner',
    'adopt-store',
    /WHERE next_identity = \$1/,
    "WHERE $1::text <> ''",
  ),
  known(
    'b100.a1',
    guard('the lock of migrations', 'migrations', 'migrations', /SELECT pg_advisory_lock\(\$1\)/, 'SELECT $1::bigint'),
  ),
  // Leases and claims that have a new owner.
  guard(
    'epoch of a renewed lease',
    'leases',
    'hand-over',
    /(?<=lane = \$2 )AND epoch = \$3(?= AND owner = \$5)/g,
    'AND $3::bigint > 0',
  ),
  guard(
    'owner of a renewed lease',
    'leases',
    'hand-over-twice',
    /AND owner = \$5(?= FOR UPDATE SKIP LOCKED|\) AS held)/g,
    "AND $5::text <> ''",
  ),
  guard('epoch of a lease that is given back', 'leases', 'hand-over', /AND l\.epoch = g\.epoch/),
  guard('owner of a lease that is given back', 'leases', 'hand-over-twice', /AND l\.owner = g\.owner/),
  guard(
    'the token of a renewed claim',
    'download-queue',
    'claims',
    /AND d\.lease_token = c\.token(?= FOR UPDATE OF d SKIP LOCKED)/,
    'AND c.token IS NOT NULL',
  ),
  guard(
    'the token of a postponed claim',
    'download-queue',
    'claims',
    /(?<=attempts = d\.attempts - \$6.*)AND d\.lease_token = c\.token$/s,
    'AND c.token IS NOT NULL',
  ),
  guard(
    'the token of a released claim',
    'download-queue',
    'claims',
    /(?<=attempts = d\.attempts - 1 FROM .*)AND d\.lease_token = c\.token$/s,
    'AND c.token IS NOT NULL',
  ),
  // Conditions that were read before the lock and are checked again under it.
  known(
    'source1.b21.source1.a5.b4.a4',
    secondLook(
      'the repeated diff of a page',
      'commit-page',
      'two-lanes',
      /AS other_lane,\s+string_agg|^SELECT application_id AS id, /,
    ),
  ),
  guard(
    'the state of a file that is opened again',
    'ready',
    'retried',
    /AND a\.state = ANY \(\$4::text\[\]\)/,
    'AND $4::text[] IS NOT NULL',
  ),
  guard('a retry leaves claims that are held', 'ready', 'retried', / WHERE \(d\.leased_until IS NULL OR .*$/s),
  guard(
    'the upload that was fetched',
    'mark-infected',
    'replaced-flagged',
    /AND uploaded_at IS NOT DISTINCT FROM \$5/,
    'AND ($5::timestamptz IS NULL OR true)',
  ),
  guard('the state of bytes that are linked', 'complete-download', 'linked', /AND state IN \('stored', 'infected'\)/),
  guard(
    'the time of announcement of an orphan to delete',
    'delete-blobs',
    'deleters',
    /AND b\.intended_at < now\(\) - interval '1 day'(?= FOR UPDATE)/,
  ),
  guard(
    'the state of lost bytes',
    'verify-blobs',
    'lost-announced-flag',
    /(?<=SET state = 'damaged' WHERE .*) AND state = 'stored'/,
  ),
  guard(
    'claims that announced lost bytes are taken back',
    'verify-blobs',
    'lost-announced',
    /(?<=AND sha256 = ANY \(\$2::text\[\]\) AND lease_token IS NOT NULL)/,
    ' AND false',
  ),
  guard(
    'applications are locked before their bytes are lost',
    'verify-blobs',
    'lost-flag',
    /(?<=ORDER BY application_id) FOR NO KEY UPDATE/,
    '',
    /^BEGIN(?!.*pg_advisory)/s,
  ),
  known(
    'run6.verify5.replace7.run2.verify5.replace20.verify7',
    guard(
      'applications are locked again after their bytes are lost',
      'verify-blobs',
      'lost-version',
      /(?<=ORDER BY application_id) FOR NO KEY UPDATE/,
      '',
      /SET resume_reason = /,
    ),
  ),
  known(
    'run6.flag21.replace7.run2.flag1.replace6.flag7',
    guard(
      'applications are locked again after their bytes are infected',
      'mark-infected',
      'version',
      /(?<=ORDER BY application_id) FOR NO KEY UPDATE/,
      '',
      /SET state = 'infected'/,
    ),
  ),
  guard(
    'the bytes of a screen that is read again',
    'stored-files',
    'reparse',
    /AND a\.sha256 = \$3/,
    'AND $3::text IS NOT NULL',
  ),
  guard('the lock of the lanes, for an audit', 'sweeps', 'certificates', lockOfLanes, 'SELECT 1'),
  guard('the lock of the lanes, for the record of an audit', 'leases', 'audit-end', lockOfLanes, 'SELECT 1'),
  guard(
    'the line before that of an audit',
    'evidence',
    'audit-pruned',
    /(?<=LEFT JOIN ended e ON true) WHERE e\.n IS NOT NULL OR \$4/,
    ' WHERE $4::boolean IS NOT NULL',
  ),
  guard(
    'one snapshot of an exported proof',
    'export-evidence',
    'proof-export',
    /ISOLATION LEVEL REPEATABLE READ (?=READ ONLY)/,
  ),
  guard('one snapshot of a proof on its page', 'proof', 'proof-page', /ISOLATION LEVEL REPEATABLE READ (?=READ ONLY)/),
  // Simulates a server whose default isolation level is not READ COMMITTED.
  guard(
    'READ COMMITTED of a transaction',
    'database',
    'ready',
    /^BEGIN ISOLATION LEVEL READ COMMITTED/,
    'BEGIN ISOLATION LEVEL REPEATABLE READ',
  ),
  // State changes that are allowed only once or only from one state.
  guard('a kept profile is not ended', 'prefills', 'state-late', /(?<=SET outcome = \$3.*) AND outcome = 'started'/s),
  guard(
    'a prefill that has ended is not kept',
    'prefills',
    'state-late',
    /(?<=SET outcome = 'prefilled'.*) AND outcome = 'started'/s,
  ),
  guard(
    'a refusal does not replace another halt',
    'advertisers',
    'halts',
    /AND \(state = 'active' OR halt_kind = 'refused'\)/,
  ),
  guard(
    'a credential that is accepted ends no other halt',
    'advertisers',
    'halts',
    /halt_kind = coalesce\(\$2, halt_kind\)/,
    '($2::text IS NULL OR true)',
  ),
  // Two clients insert the same key, or lock the same rows.
  guard(
    'ON CONFLICT of flagged bytes',
    'mark-infected',
    'lifted',
    /ON CONFLICT \(advertiser_id, sha256\) DO UPDATE SET state = 'infected'.*$/s,
  ),
  guard(
    'ON CONFLICT of bytes that are dropped',
    'delete-blobs',
    'drop',
    /(?<=AS b \(sha256, key\)) ON CONFLICT DO NOTHING/,
  ),
  guard(
    'ON CONFLICT of a rate limit',
    'rate-limit',
    'slots',
    /ON CONFLICT \(source\) DO UPDATE.*?RETURNING/s,
    'RETURNING $3::float8 AS ahead,',
  ),
  guard(
    'ON CONFLICT of the trust in Hash',
    'complete-download',
    'compared',
    /ON CONFLICT \(advertiser_id\) DO UPDATE SET agreed.*?(?=RETURNING unchanged)/s,
  ),
  guard(
    'ON CONFLICT of a file that is opened again',
    'ready',
    'retried',
    /ON CONFLICT \(advertiser_id, application_id, kind\) DO UPDATE SET due_at = now\(\).*$/s,
  ),
  guard(
    'ON CONFLICT of counted prefills',
    'lapse',
    'prefill-days',
    /ON CONFLICT \(advertiser_id, day\) DO UPDATE SET.*?(?=\s+\)\s+SELECT count)/s,
  ),
  guard('SKIP LOCKED of counted prefills', 'lapse', 'prefill-days', /(?<=FOR UPDATE) SKIP LOCKED(?=\)\)\s+RETURNING)/),
  guard(
    'SKIP LOCKED of confirmations that are dropped',
    'complete-download',
    'confirmations-dropped',
    /(?<=a\.state <> 'pending' FOR UPDATE OF d) SKIP LOCKED/,
  ),
  // Retries after a conflict.
  repetition('a page is compared again after the same new key', 'commit-page', 'new-parallel', 'b'),
  repetition('a page is compared again after a deadlock', 'commit-page', 'infected', 'page'),
  known(
    'letter5.flag21.letter2.resume3.flag8',
    repetition('a completion is repeated after a deadlock', 'complete-download', 'flagged-twice', 'resume'),
  ),
  known(
    'delete6.fetch5.page19.fetch3',
    repetition('an announcement is repeated after a deadlock', 'store', 'infected', 'fetch'),
  ),
  repetition('an erasure is repeated after a deadlock', 'erasure-jobs', 'erase-release', 'erase'),
  repetition('a second check is repeated after a deadlock', 'erasure-jobs', 'erase-again-release', 'again'),
  repetition('a recall is repeated after a deadlock', 'mark-infected', 'recalled-twice', 'recall'),
  repetition('a loss is recorded again after a deadlock', 'store', 'lost-twice', 'verify'),
  repetition('a drop is begun again after a deadlock', 'store', 'drop-two', 'drop'),
  known(
    'second1.retry4.release1.second1',
    repetition('a retry is repeated after a deadlock', 'store', 'released', 'retry'),
  ),
  known(
    'second1.retry4.release1.second1',
    repetition('a release is repeated after a deadlock', 'store', 'released', 'release'),
  ),
  repetition('a delete is confirmed again after a deadlock', 'store', 'confirmed-delete', 'delete'),
];

/** Looks for a schedule that breaks without the guard: first the known one, then all. */
export async function exploreWithout(
  stage: Stage,
  guard: Guard,
  bounds: Bounds,
): Promise<Explored & { readonly taken: number }> {
  const scenario = scenarios[guard.scenario](stage);
  const taken = guard.takeOut(stage);
  try {
    const found = guard.at === undefined ? null : await replay(stage, scenario, guard.at);
    if (found) return { ...found, taken: taken.count };
    const explored = await explore(stage, scenario, bounds);
    return { ...explored, taken: taken.count };
  } finally {
    stage.gate.rewrite = (sql) => sql;
    stage.gate.hidesConflictsOf = null;
    stage.answersAsBefore = null;
  }
}

/** Plays one schedule. Returns null when it can no longer be played or breaks nothing. */
async function replay(stage: Stage, scenario: Scenario, at: string): Promise<Explored | null> {
  const startedAt = performance.now();
  const played = await play(stage, scenario, fromText(at)).catch((error: unknown) => {
    if (!(error instanceof Unplayable)) throw error;
    return null;
  });
  if (!played?.error) return null;
  const choices = played.outcome.decisions.map(({ chosen }) => chosen);
  const found = { number: 1, choices, outcome: played.outcome, error: played.error };
  return { found, schedules: [1], isComplete: false, deadlocks: 0, diverged: 0, ms: performance.now() - startedAt };
}
