// Lists every guard against concurrency bugs, with a scenario that breaks without it. The product's code runs unchanged: most guards are
// removed from the statements on their way to the server, the others by changing the server's answers.
import { type Bounds, type Explored, explore, fromText, play, type Scenario } from './explorer.ts';
import { type ScenarioName, toScenario } from './scenarios/all.ts';
import { Unplayable } from './schedule.ts';
import type { Stage } from './stage.ts';

export interface Guard extends Options {
  readonly scenario: ScenarioName;
  readonly name: string;
  /** Removes the guard until `exploreWithout` resets the stage. */
  readonly takeOut: (stage: Stage) => Taken;
}

interface Options {
  /** The first schedules already break without the guard, so `npm run test:all` covers it. */
  readonly isQuick?: boolean;
  /** The start of a schedule that breaks without the guard, where a search takes minutes. If it breaks nothing, the search runs. */
  readonly at?: string;
}

/** Counts the statements or answers from which the guard was removed. */
interface Taken {
  count: number;
}

interface Replacement extends Options {
  /** What takes the place of the guard; nothing by default. */
  readonly by?: string;
  /** The guard is removed only if the previous statement on the connection matches. */
  readonly after?: RegExp;
}

/** A guard in a statement. */
function guard(scenario: ScenarioName, name: string, out: RegExp, replacement: Replacement = {}): Guard {
  const { by = '', after = /^/, ...options } = replacement;
  return {
    ...{ scenario, name, ...options },
    takeOut(stage) {
      const taken = { count: 0 };
      stage.gate.rewrite = (sql, before) => {
        const without = after.test(before) ? sql.replace(out, by) : sql;
        if (without !== sql) taken.count++;
        return without;
      };
      return taken;
    },
  };
}

/** The lock that BEGIN takes on the lanes of an advertiser. */
const withoutLanes = (scenario: ScenarioName, name: string, at?: string): Guard =>
  guard(scenario, name, /SELECT pg_advisory_xact_lock(_shared)?\(1, [^;]+/, { by: 'SELECT 1', ...(at && { at }) });

/** The order in which a statement locks its rows: without the guard it is the opposite one. */
const reversed = (scenario: ScenarioName, name: string, order: RegExp): Guard =>
  guard(scenario, name, order, { by: '$& DESC' });

/** A retry after a conflict: the proxy gives the client another error instead, so the client does not retry. */
const repetition = (scenario: ScenarioName, name: string, client: string, options: Options = {}): Guard => ({
  ...{ scenario, name, ...options },
  takeOut(stage) {
    stage.gate.hidesConflictsOf = client;
    return { count: 1 };
  },
});

/** A query that a transaction repeats under its locks: the stage returns the rows that were read before the transaction. */
const secondLook = (scenario: ScenarioName, name: string, statement: RegExp, options: Options): Guard => ({
  ...{ scenario, name, ...options },
  takeOut(stage) {
    const taken = { count: 0 };
    stage.answersAsBefore = { statement, onAnswer: () => void taken.count++ };
    return taken;
  },
});

/**
 * Some conditions of files have no guard here, because no promise breaks without them. They save work:
 *
 * - the order in which announced, stored, flagged and dropped blobs are locked: each of these transactions is repeated after a deadlock;
 * - the order of profiles that lapse: nobody waits for a profile with SKIP LOCKED;
 * - the announcement of infected bytes does not renew its time, and a second flag does not begin the delete again: there is no new object;
 * - only stored bytes get the time at which they were read: nobody asks when others were.
 *
 * A linked blob counts as announced, so that an earlier release beside this one does not take it for an orphan.
 */
export const guards: readonly Guard[] = [
  guard('two-writers', 'FOR SHARE of the fence', /(?<=AND owner = \$4) FOR SHARE/, { isQuick: true }),
  guard('same-owner', 'epoch in the fence', /AND epoch = \$3 (?=AND owner = \$4 FOR SHARE)/, {
    by: 'AND $3::bigint > 0 ',
  }),
  guard('epoch-twice', 'owner in the fence', /AND owner = \$4(?= FOR SHARE)/, { by: "AND $4::text <> ''" }),
  guard('heartbeat', 'SKIP LOCKED of a claim of a lane', /(?<=FOR UPDATE OF l) SKIP LOCKED/, { at: 'a12.time1.b1' }),
  guard('heartbeat', 'SKIP LOCKED of a heartbeat', /(?<=owner = \$5 FOR UPDATE) SKIP LOCKED/),
  guard('maintenance', 'the rest after a task', /\(l\.done_at IS NULL OR.*'1 minute'\)/, { by: 'true' }),
  withoutLanes('two-lanes', 'the lock of the lanes', 'source1.a13.source1.b11.a14'),
  guard('two-lanes', 'the recent pages of the other lane', /(?<=SELECT 1 FROM intake\.recent_pages r\s+WHERE) /, {
    by: ' false AND ',
    at: 'source1.b4.source1.a11',
  }),
  guard('one-lane', 'the number of the last change', /observed_seq > \$3 OR/, { by: 'false OR' }),
  guard('orphan', 'the token of a delete', /WHEN \(b\.delete_until .*?'\) THEN 'deleting'/, {
    at: 'delete8.fetch12.delete14.delete!',
  }),
  guard(
    'ready',
    'the lock of the application of a completed file',
    /(?<=ORDER BY application_id) FOR NO KEY UPDATE(?=\s+\)\s+DELETE FROM intake\.downloads)/,
  ),
  guard(
    'ready-equal',
    'ON CONFLICT of a stored blob',
    /ON CONFLICT \(advertiser_id, sha256\) DO UPDATE SET\s+state = CASE WHEN b\.state = 'infected'.*delete_until = NULL/s,
  ),
  guard('replaced', 'the token of a completed download', /AND d\.lease_token = ended\.token/, {
    by: 'AND ended.token IS NOT NULL',
  }),
  guard('batch', 'a claim that is held is not taken', /(?<=due_at <= now\(\)) AND \(d\.leased_until .*?minutes'\)/g, {
    at: 'other1',
  }),
  guard('batch', 'SKIP LOCKED of a claim of downloads', /(?<=\(SELECT size FROM share\) FOR UPDATE) SKIP LOCKED/),
  guard('batch', 'SKIP LOCKED of the heartbeat of downloads', /(?<=FOR UPDATE OF d) SKIP LOCKED/),
  guard(
    'replaced',
    'the download of a replaced file leaves the queue',
    /(?<=DELETE FROM intake\.downloads d USING \(SELECT f.*WHERE) d\.advertiser_id = \$1/s,
    { by: ' false AND d.advertiser_id = $1' },
  ),
  guard(
    'rehashed',
    'a claim is taken back when the Hash of its file changes',
    /UPDATE intake\.downloads d SET lease_token = NULL/,
    { by: 'UPDATE intake.downloads d SET lease_token = d.lease_token' },
  ),
  guard(
    'infected',
    'infected bytes are known when they come again',
    /state = CASE WHEN b\.state = 'infected' THEN b\.state ELSE 'stored' END/,
    { by: "state = 'stored'" },
  ),
  guard('erase-page', 'an erased application stays so', /(?<=WHERE) a\.what <> 'request'/, { by: ' false' }),
  withoutLanes('erase-quarantine', 'the lock of the lanes, for an erasure'),
  guard('erase-quarantine', 'tombstones of elements', /(?<=JOIN intake\.erasures e ON) /, { by: ' false AND ' }),
  guard('erase-prefill', 'a profile is kept only if nobody erased its person', /OR \(a\.lacks_id AND/, {
    by: '$& false AND',
  }),
  withoutLanes('erase-prefill', 'the lock of the lanes, for a profile'),
  guard('erase-prefill', 'a profile is redeemed once', /AND outcome = 'prefilled' (?=AND NOT \(expires_at)/),
  guard('state-twice', 'a state is taken once', /s\.used_at IS NULL(?= AND NOT f\.is_expired)/, {
    by: 'f.used_at IS NULL',
  }),
  guard(
    'erase-resume',
    'an erasure knows the resumes of the person',
    /UNION SELECT resume_sha256 FROM intake\.prefills WHERE .*(?=\) AS f)/s,
  ),
  guard(
    'lapse-resume',
    'bytes of a kept resume are needed',
    /OR EXISTS \(SELECT 1 FROM intake\.prefills p WHERE p\.advertiser_id = \$1 AND p\.resume_sha256 = b\.sha256\)/,
  ),
  guard(
    'lapse-early',
    'the lock of a prefill whose resume is announced',
    /(?<=AND resume_sha256 = \$3) FOR NO KEY UPDATE/,
    { at: 'visit7.lapse3.visit1' },
  ),
  guard(
    'lapse-early',
    'SKIP LOCKED of profiles that lapse',
    /(?<=ORDER BY advertiser_id, prefill_id FOR UPDATE) SKIP LOCKED/,
  ),
  guard('flag-resume', 'a flag reaches resumes', /SET resume_reason = \$4 WHERE/, {
    by: 'SET resume_reason = resume_reason WHERE $4::text IS NOT NULL AND',
  }),
  guard('lost-resume', 'a reason that came during the put stays', /coalesce\(resume_reason, \$4\)/g, {
    by: '$$4::text',
    at: 'visit9.verify1',
  }),
  guard(
    'erase-prefill',
    'a prefill that has ended is not offered',
    /(?<=SET handle_hash = \$3, .*) AND outcome = 'prefilled'/s,
    { at: 'visit5.erase1' },
  ),
  guard('erase-twice', 'an erasure is closed once', /(?<=step = 'closed', closed_at.*) AND step <> 'closed'/s),
  guard('pinned', 'an id is pinned once', /coalesce\(v\.advertiser_id, excluded\.advertiser_id\)/, {
    by: 'excluded.advertiser_id',
  }),
  guard('cursors', 'ON CONFLICT of a raised cursor', /ON CONFLICT \(advertiser_id\) DO UPDATE\s+SET after_id.*$/s),
  guard('events', 'the lock of the events', /pg_advisory_xact_lock\(2, [^)]+\)\)/, {
    by: '1',
    at: 'c4.b3.a4.reader3',
    isQuick: true,
  }),
  guard('slots', 'a slot begins where the last one ends', /WHEN p\.next_at BETWEEN/, {
    by: 'WHEN false AND p.next_at BETWEEN',
  }),
  guard('slots', 'a longer Retry-After stays', /AND NOT coalesce\(.*, false\)/s, { isQuick: true }),
  guard(
    'infected',
    'claims that announced freed bytes are taken back',
    /(?<=AND sha256 = ANY \(\$2::text\[\]\) AND lease_token IS NOT NULL)/,
    { by: ' AND false', at: 'fetch3.delete6.page1' },
  ),
  guard(
    'flagged',
    'an infected blob that came again is deleted again',
    /deleted_at = NULL, delete_token = NULL, delete_until = NULL/,
    { by: 'deleted_at = b.deleted_at', at: 'fetch3.page30.delete1' },
  ),
  guard('flagged', 'the confirmation asks for its token', /b\.delete_token = \$4/g, {
    by: '$4::uuid IS NOT NULL',
    at: 'fetch3.page30.delete3.fetch1',
  }),
  guard(
    'orphan-late',
    'the confirmation asks whether its token has expired',
    / AND \(b\.state = 'infected' OR .*?'\)\)/s,
    { at: 'delete9.time1.fetch4.delete1' },
  ),
  guard('drop-infected', 'dropped bytes take the token of a delete', /delete_token = gen_random_uuid\(\)/, {
    by: 'delete_token = coalesce(b.delete_token, gen_random_uuid())',
    at: 'delete1.put1.drop6.delete1.drop1',
  }),
  guard(
    'lifted',
    'applications are locked before a lost claim marks its bytes as infected',
    /(?<=UNION SELECT unnest\(\$3::bigint\[\]\)\)\s+ORDER BY application_id) FOR NO KEY UPDATE/,
    { at: 'page13.run1' },
  ),
  guard(
    'lifted-one',
    'another file is flagged with freed bytes',
    /AND NOT EXISTS \(\s+SELECT 1 FROM intake\.attachments a WHERE a\.advertiser_id = \$1 AND a\.sha256 = b\.sha256 AND a\.has_virus\)/,
  ),
  guard(
    'lifted-one',
    'an earlier version is flagged with freed bytes',
    /AND NOT EXISTS \(\s+SELECT 1 FROM intake\.attachment_versions v JOIN.*IS NOT DISTINCT FROM v\.uploaded_at\)/s,
  ),
  guard('flag', 'announced bytes of a flagged file', /WHERE f\.has_virus AND d\.sha256 IS NOT NULL/, {
    by: 'WHERE false AND f.has_virus',
    at: 'run4.run!.page1',
  }),
  guard(
    'fetched-twice',
    'the flag of the file whose claim was lost',
    /(?<=kind = \$3 AND state = 'infected') AND has_virus/,
  ),
  reversed(
    'order-page',
    'the order of locks of a completion',
    /ORDER BY application_id(?= FOR NO KEY UPDATE\s+\)\s+DELETE FROM intake\.downloads)/,
  ),
  reversed(
    'order-page',
    'the order of locks of a page',
    /(?<=ANY \(\$2::bigint\[\]\)\s+)ORDER BY application_id(?= FOR NO KEY UPDATE$)/,
  ),
  reversed(
    'order-back',
    'the order of locks of applications that are back',
    /(?<=AS missing FROM intake\.applications\s+WHERE .*)ORDER BY application_id(?= FOR NO KEY UPDATE)/s,
  ),
  reversed(
    'order-erase',
    'the order of locks of an erasure',
    /ORDER BY application_id(?= LIMIT \$3::bigint FOR UPDATE)/,
  ),
  reversed(
    'order-retry',
    'the order of locks of a retry',
    /(?<=ANY \(\$2::bigint\[\]\)\s+)ORDER BY application_id(?= FOR NO KEY UPDATE$)/,
  ),
  reversed(
    'order-lost',
    'the order of locks of lost bytes',
    /(?<=UNION SELECT unnest\(\$3::bigint\[\]\)\)\s+)ORDER BY application_id(?= FOR NO KEY UPDATE)/,
  ),
  guard(
    'ready-equal',
    'ON CONFLICT of announced bytes',
    /ON CONFLICT \(advertiser_id, sha256\) DO UPDATE SET\s+intended_at.*?(?=RETURNING sha256, CASE)/s,
  ),
  guard('replaced', 'the token of announced bytes', /AND d\.lease_token = i\.token/, { by: 'AND i.token IS NOT NULL' }),
  guard(
    'trust',
    'the lock of the trust in Hash',
    /(?<=FROM intake\.hash_trust WHERE advertiser_id = \$1) FOR NO KEY UPDATE/,
  ),
  guard(
    'drop',
    'bytes of an attachment are not dropped',
    /EXISTS \(SELECT 1 FROM intake\.attachments a WHERE a\.advertiser_id = \$1 AND a\.sha256 = b\.sha256\)(?= OR)/,
    { by: 'false' },
  ),
  guard(
    'drop-version',
    'bytes of an earlier version are not dropped',
    / OR EXISTS \(SELECT 1 FROM intake\.attachment_versions v WHERE v\.advertiser_id = \$1 AND v\.sha256 = b\.sha256\)/,
  ),
  guard(
    'drop',
    'announced bytes are not dropped',
    / OR EXISTS \(SELECT 1 FROM intake\.downloads d WHERE d\.advertiser_id = \$1 AND d\.sha256 = b\.sha256\)/,
  ),
  guard('drop', 'the lock of bytes that are dropped', /(?<=ORDER BY sha256) FOR UPDATE/, { at: 'drop4.fetch12.drop9' }),
  guard(
    'drop',
    'an announcement ends a delete that nobody carries out',
    /state = CASE WHEN b\.state = 'deleting' AND .*? THEN 'writing' ELSE b\.state END/s,
    { by: 'state = b.state', at: 'drop6.fetch4.drop1' },
  ),
  guard(
    'drop-replaced',
    'an announcement leaves a delete that is under way',
    /(?<=CASE WHEN b\.state = 'deleting') AND \(b\.delete_until .*? IS NOT TRUE/s,
    { at: 'drop8.fetch4.drop!.page1' },
  ),
  guard('deleters', 'SKIP LOCKED of bytes to delete', /(?<=LIMIT 10 FOR UPDATE) SKIP LOCKED/, { at: 'a1.b1' }),
  guard(
    'deleters',
    'a delete that is under way is not begun again',
    /AND \(b\.delete_until .*? IS NOT TRUE(?=\s+LIMIT)/s,
  ),
  guard('forward', 'SKIP LOCKED of downloads that are brought forward', /(?<=FOR UPDATE OF d) SKIP LOCKED/),
  withoutLanes('coverage', 'the lock of the lanes, for coverage'),
  guard('new-account', 'ON CONFLICT of a new account', /ON CONFLICT \(name\) DO UPDATE SET.*?(?=\s+RETURNING)/s),
  guard(
    'reparse-flagged',
    'the state of a screen that is read again',
    / AND a\.state = 'stored'(?= AND a\.sha256 = \$3)/,
  ),
  guard(
    'reparse-missing',
    'the lock of the application whose screens are read again',
    /(?<=AND application_id = \$2) FOR NO KEY UPDATE/,
  ),
  guard('erase-file', 'the lock of an erasure', /(?<=LIMIT \$3::bigint) FOR UPDATE/, {
    at: 'erase8.time1.run12.erase1',
  }),
  guard(
    'erase-file',
    'bytes may be put for a day after they are announced',
    /intended_at = CASE WHEN b\.state = 'infected' THEN b\.intended_at ELSE now\(\) END/,
    { by: 'intended_at = b.intended_at', at: 'run3.erase35.run1.run!' },
  ),
  guard(
    'erase-file',
    'the row of deleted bytes stays for a day',
    / AND b\.intended_at < now\(\) - interval '1 day'\)(?=\s+RETURNING b\.adv)/,
    { by: ')', at: 'run3.erase35.run1.run!' },
  ),
  guard(
    'erase-retry',
    'an erased application is never ready',
    / AND a\.erased_at IS NULL(?=\s+RETURNING a\.application_id, s\.ready)/,
  ),
  guard('adopted', 'ON CONFLICT of an adopted object', /ON CONFLICT DO NOTHING(?= RETURNING 1)/),
  guard('first-use', 'ON CONFLICT of the blob store', /(?<=DEFAULT VALUES) ON CONFLICT DO NOTHING/),
  guard(
    'first-use',
    'the plan of a process that takes a blob store',
    /(?<=SET next_identity = \$2) WHERE next_identity IS NOT DISTINCT FROM \$1/,
    { by: " WHERE $1::text IS NULL OR $1::text <> ''" },
  ),
  guard('adopt-store', 'the confirmed identity is the planned one', /WHERE next_identity = \$1/, {
    by: "WHERE $1::text <> ''",
  }),
  guard('migrations', 'the lock of migrations', /SELECT pg_try_advisory_lock\(\$1\) AS taken/, {
    by: 'SELECT $1::bigint IS NOT NULL AS taken',
    at: 'b100.a1',
  }),
  // Leases and claims that have a new owner.
  guard('hand-over', 'epoch of a renewed lease', /(?<=lane = \$2 )AND epoch = \$3(?= AND owner = \$5)/g, {
    by: 'AND $3::bigint > 0',
  }),
  guard('hand-over-twice', 'owner of a renewed lease', /AND owner = \$5(?= FOR UPDATE SKIP LOCKED|\) AS held)/g, {
    by: "AND $5::text <> ''",
  }),
  guard('hand-over', 'epoch of a lease that is given back', /AND l\.epoch = g\.epoch/),
  guard('hand-over-twice', 'owner of a lease that is given back', /AND l\.owner = g\.owner/),
  guard('claims', 'the token of a renewed claim', /AND d\.lease_token = c\.token(?= FOR UPDATE OF d SKIP LOCKED)/, {
    by: 'AND c.token IS NOT NULL',
  }),
  guard(
    'claims',
    'the token of a postponed claim',
    /(?<=attempts = d\.attempts - \$6.*)AND d\.lease_token = c\.token$/s,
    { by: 'AND c.token IS NOT NULL' },
  ),
  guard(
    'claims',
    'the token of a released claim',
    /(?<=attempts = d\.attempts - 1 FROM .*)AND d\.lease_token = c\.token$/s,
    { by: 'AND c.token IS NOT NULL' },
  ),
  // Conditions that were read before the lock and are checked again under it.
  secondLook('two-lanes', 'the repeated diff of a page', /^SELECT json_agg\(CASE|^SELECT application_id AS id, /, {
    at: 'source1.b25.source1.a5.b4.a5',
  }),
  guard('retried', 'the state of a file that is opened again', /AND a\.state = ANY \(\$4::text\[\]\)/, {
    by: 'AND $4::text[] IS NOT NULL',
  }),
  guard(
    'retried-other',
    'the lock of an application whose file is opened again',
    /(?<=ANY \(\$2::bigint\[\]\)\s+ORDER BY application_id) FOR NO KEY UPDATE$/,
  ),
  guard('retried', 'a retry leaves claims that are held', / WHERE \(d\.leased_until IS NULL OR .*$/s),
  guard('replaced-flagged', 'the upload that was fetched', /AND uploaded_at IS NOT DISTINCT FROM \$5/, {
    by: 'AND ($5::timestamptz IS NULL OR true)',
  }),
  guard(
    'linked',
    'the lock of bytes that are linked',
    /UPDATE intake\.blobs SET intended_at = now\(\)\s+(WHERE .*) RETURNING sha256, state/s,
    { by: 'SELECT sha256, state FROM intake.blobs $1' },
  ),
  guard('linked', 'the state of bytes that are linked', /AND state IN \('stored', 'infected'\)/),
  guard(
    'deleters',
    'the time of announcement of an orphan to delete',
    /AND b\.intended_at < now\(\) - interval '1 day'(?= LIMIT)/,
  ),
  guard('lost-announced-flag', 'the state of lost bytes', /(?<=SET state = 'damaged' WHERE .*) AND state = 'stored'/),
  guard(
    'lost-announced',
    'claims that announced lost bytes are taken back',
    /(?<=AND sha256 = ANY \(\$2::text\[\]\) AND lease_token IS NOT NULL)/,
    { by: ' AND false' },
  ),
  guard(
    'lost-flag',
    'applications are locked before their bytes are lost',
    /(?<=ORDER BY application_id) FOR NO KEY UPDATE/,
    { after: /^BEGIN(?!.*pg_advisory)/s },
  ),
  guard(
    'lost-version',
    'applications are locked again after their bytes are lost',
    /(?<=ORDER BY application_id) FOR NO KEY UPDATE/,
    { after: /SET state = 'damaged'/, at: 'run6.verify5.replace7.run2.verify4.replace20.verify1' },
  ),
  guard(
    'version',
    'applications are locked again after their bytes are infected',
    /(?<=ORDER BY application_id) FOR NO KEY UPDATE/,
    { after: /SET state = 'infected'/, at: 'run6.flag26.replace9.run2.flag1.replace8.flag1' },
  ),
  guard('reparse', 'the bytes of a screen that is read again', /AND a\.sha256 = \$3/, {
    by: 'AND $3::text IS NOT NULL',
  }),
  withoutLanes('certificates', 'the lock of the lanes, for an audit'),
  withoutLanes('audit-end', 'the lock of the lanes, for the record of an audit'),
  guard(
    'audit-pruned',
    'the line before that of an audit',
    /(?<=LEFT JOIN ended e ON true) WHERE e\.n IS NOT NULL OR \$4/,
    { by: ' WHERE $4::boolean IS NOT NULL' },
  ),
  guard('proof-export', 'one snapshot of an exported proof', /ISOLATION LEVEL REPEATABLE READ (?=READ ONLY)/),
  guard('proof-page', 'one snapshot of a proof on its page', /ISOLATION LEVEL REPEATABLE READ (?=READ ONLY)/),
  // Simulates a server whose default isolation level is not READ COMMITTED.
  guard('ready', 'READ COMMITTED of a transaction', /^BEGIN ISOLATION LEVEL READ COMMITTED/, {
    by: 'BEGIN ISOLATION LEVEL REPEATABLE READ',
  }),
  // State changes that are allowed only once or only from one state.
  guard('state-late', 'a kept profile is not ended', /(?<=SET outcome = \$3.*) AND outcome = 'started'/s),
  guard(
    'state-late',
    'a prefill that has ended is not kept',
    /(?<=SET outcome = 'prefilled'.*) AND outcome = 'started'/s,
  ),
  guard('halts', 'a refusal does not replace another halt', /AND \(state = 'active' OR halt_kind = 'refused'\)/),
  guard('halts', 'a credential that is accepted ends no other halt', /halt_kind = coalesce\(\$2, halt_kind\)/, {
    by: '($2::text IS NULL OR true)',
  }),
  // Two clients insert the same key, or lock the same rows.
  guard('earlier-resume', 'ON CONFLICT of an earlier resume', /(?<=to_timestamp\(0\)\)) ON CONFLICT DO NOTHING/),
  guard(
    'confirmations-dropped',
    'a claimed confirmation is not dropped',
    /AND d\.lease_token IS NULL (?=AND a\.state)/,
  ),
  guard(
    'lifted',
    'ON CONFLICT of flagged bytes',
    /ON CONFLICT \(advertiser_id, sha256\) DO UPDATE SET state = 'infected'.*$/s,
  ),
  guard('drop', 'ON CONFLICT of bytes that are dropped', /(?<=AS b \(sha256, key\)) ON CONFLICT DO NOTHING/),
  guard('slots', 'ON CONFLICT of a rate limit', /ON CONFLICT \(source\) DO UPDATE.*?RETURNING/s, {
    by: 'RETURNING $3::float8 AS ahead,',
  }),
  guard(
    'compared',
    'ON CONFLICT of the trust in Hash',
    /ON CONFLICT \(advertiser_id\) DO UPDATE SET agreed.*?(?=RETURNING unchanged)/s,
  ),
  guard(
    'retried',
    'ON CONFLICT of a file that is opened again',
    /ON CONFLICT \(advertiser_id, application_id, kind\) DO UPDATE SET due_at = now\(\).*$/s,
  ),
  guard(
    'prefill-days',
    'ON CONFLICT of counted prefills',
    /ON CONFLICT \(advertiser_id, day\) DO UPDATE SET.*?(?=\s+\)\s+SELECT count)/s,
  ),
  guard('prefill-days', 'SKIP LOCKED of counted prefills', /(?<=FOR UPDATE) SKIP LOCKED(?=\)\)\s+RETURNING)/),
  guard(
    'confirmations-dropped',
    'SKIP LOCKED of confirmations that are dropped',
    /(?<=a\.state <> 'pending' FOR UPDATE OF d) SKIP LOCKED/,
  ),
  // Retries after a conflict.
  repetition('new-parallel', 'a page is compared again after the same new key', 'b'),
  repetition('infected', 'a page is compared again after a deadlock', 'page'),
  repetition('flagged-twice', 'a completion is repeated after a deadlock', 'resume', {
    at: 'letter5.flag26.letter2.resume3.flag1',
  }),
  repetition('infected', 'an announcement is repeated after a deadlock', 'fetch', { at: 'fetch2.page22.fetch1.page1' }),
  repetition('erase-release', 'an erasure is repeated after a deadlock', 'erase'),
  repetition('recalled-twice', 'a recall is repeated after a deadlock', 'recall'),
  repetition('lost-twice', 'a loss is recorded again after a deadlock', 'verify'),
  repetition('drop-two', 'a drop is begun again after a deadlock', 'drop'),
  repetition('released', 'a retry is repeated after a deadlock', 'retry', { at: 'second1.retry4.release1.second1' }),
  repetition('released', 'a release is repeated after a deadlock', 'release', {
    at: 'second1.retry4.release1.second1',
  }),
  repetition('confirmed-delete', 'a delete is confirmed again after a deadlock', 'delete'),
];

/** Whether the guard stands in one of these statements; each comes with the statement before it on its connection. */
export function isMet(guard: Guard, statements: Iterable<readonly [sql: string, before: string]>): boolean {
  const gate = { rewrite: (sql: string, _before: string) => sql, hidesConflictsOf: null };
  const stage = { gate, answersAsBefore: null as Stage['answersAsBefore'] };
  const taken = guard.takeOut(stage as unknown as Stage);
  for (const [sql, before] of statements) {
    gate.rewrite(sql, before);
    if (stage.answersAsBefore?.statement.test(sql)) taken.count++;
  }
  return taken.count > 0;
}

/** Looks for a schedule that breaks without the guard: first the known one, then all. */
export async function exploreWithout(
  stage: Stage,
  guard: Guard,
  bounds: Bounds,
): Promise<Explored & { readonly taken: number }> {
  const scenario = toScenario(guard.scenario, stage);
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
