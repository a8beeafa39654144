// Invariants that hold at every moment, with or without faults. Triggers check some of them at each write or commit, so that a violation
// between two looks is seen. One statement, and so one snapshot, checks the others. A finding begins with the promise that is broken.

import { createHash } from 'node:crypto';
import { wrongDaysSql } from '../../support/database/wrong-days.ts';
import type { Cluster } from '../cluster.ts';
import { findChangingElements } from '../elements.ts';
import { faults } from '../faults/faults.ts';
import type { Stage } from '../stage.ts';
import { changeMark } from '../workload.ts';

const watchSql = `
  CREATE SCHEMA chaos;
  CREATE TABLE chaos.broken (promise text NOT NULL, application_id bigint);
  CREATE FUNCTION chaos.watch_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    IF substring(NEW.job_reference FROM '^${changeMark}(\\d+)$')::int < substring(OLD.job_reference FROM '^${changeMark}(\\d+)$')::int
      OR OLD.job_reference LIKE '${changeMark}%' AND NEW.job_reference NOT LIKE '${changeMark}%' AND NEW.erased_at IS NULL THEN
      INSERT INTO chaos.broken VALUES (format('P5: application %s was overwritten by an older answer (%s by %s)',
        NEW.application_id, OLD.job_reference, NEW.job_reference));
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_change BEFORE UPDATE OF job_reference ON intake.applications
    FOR EACH ROW EXECUTE FUNCTION chaos.watch_change();
  -- Checked at COMMIT: an application exists at the cursor's position.
  CREATE FUNCTION chaos.watch_cursor() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO chaos.broken SELECT format('P4: the cursor was committed at %s before that application was', NEW.after_id)
    WHERE NOT EXISTS (SELECT 1 FROM intake.applications a
      WHERE a.advertiser_id = NEW.advertiser_id AND a.application_id = NEW.after_id);
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER watch_cursor AFTER INSERT OR UPDATE ON intake.cursors DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION chaos.watch_cursor();
  -- The row of a pending attachment leaves the queue only by the worker that claimed it, or by an erasure. A page that has another file in its
  -- place queues it anew. Checked at COMMIT.
  CREATE FUNCTION chaos.watch_claim() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO chaos.broken SELECT format('P6: the download of %s of %s was ended by somebody who did not hold it', OLD.kind, OLD.application_id), OLD.application_id
    FROM intake.attachments f WHERE f.advertiser_id = OLD.advertiser_id AND f.application_id = OLD.application_id
      AND f.kind = OLD.kind AND f.state = 'pending' AND NOT EXISTS (SELECT 1 FROM intake.downloads d
        WHERE d.advertiser_id = OLD.advertiser_id AND d.application_id = OLD.application_id AND d.kind = OLD.kind);
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER watch_claim AFTER DELETE ON intake.downloads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.lease_token IS NULL) EXECUTE FUNCTION chaos.watch_claim();
  -- The facts at an application's last event. A new event needs a change of facts. Checked at COMMIT, after all writes of the transaction.
  CREATE TABLE chaos.told (advertiser_id bigint, application_id bigint, xact xid8 NOT NULL, facts text NOT NULL,
    PRIMARY KEY (advertiser_id, application_id));
  -- STABLE, so that it uses the snapshot of the calling statement; otherwise a look would compare two snapshots.
  CREATE FUNCTION chaos.facts(a intake.applications) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT concat_ws('|', encode(substring(a.facts_hash FOR 16), 'hex'), a.missing_since IS NOT NULL, a.erased_at IS NOT NULL, a.ready_at IS NOT NULL,
      (SELECT string_agg(concat_ws(',', f.kind, f.state, f.version, f.sha256, f.reason, f.has_virus), ';' ORDER BY f.kind)
       FROM intake.attachments f WHERE f.advertiser_id = a.advertiser_id AND f.application_id = a.application_id),
      (SELECT string_agg(concat_ws(',', v.kind, v.version, v.state), ';' ORDER BY v.kind, v.version)
       FROM intake.attachment_versions v WHERE v.advertiser_id = a.advertiser_id AND v.application_id = a.application_id))
  $$;
  CREATE FUNCTION chaos.watch_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
  DECLARE current text; last chaos.told;
  BEGIN
    -- Locks the row first, so that of two transactions about to commit, the second sees the facts of the first.
    INSERT INTO chaos.told VALUES (NEW.advertiser_id, NEW.application_id, pg_current_xact_id(), '') ON CONFLICT DO NOTHING;
    SELECT * INTO last FROM chaos.told t WHERE t.advertiser_id = NEW.advertiser_id AND t.application_id = NEW.application_id FOR UPDATE;
    SELECT chaos.facts(a) INTO current FROM intake.applications a
    WHERE a.advertiser_id = NEW.advertiser_id AND a.application_id = NEW.application_id;
    IF last.facts = current AND last.xact <> pg_current_xact_id() THEN
      INSERT INTO chaos.broken VALUES (format('P26: %s of %s, which did not change', NEW.type, NEW.application_id), NEW.application_id);
    END IF;
    UPDATE chaos.told t SET xact = pg_current_xact_id(), facts = current
    WHERE t.advertiser_id = NEW.advertiser_id AND t.application_id = NEW.application_id;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER watch_event AFTER INSERT ON intake.events DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION chaos.watch_event();
  -- A lane gets a new owner while a transaction still writes under an earlier epoch. This breaks a promise only if that transaction
  -- commits: a transaction that reaches the fence too late may write for a moment, and is rolled back.
  CREATE TABLE chaos.overtaken (promise text NOT NULL, xact xid8 NOT NULL);
  -- An erasure also writes the sweeps table, under the same lock but without a lane.
  CREATE TABLE chaos.erasures (xact xid8 NOT NULL);
  CREATE FUNCTION chaos.watch_erasure() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO chaos.erasures VALUES (pg_current_xact_id());
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_erasure AFTER UPDATE ON intake.applications FOR EACH ROW
    WHEN (NEW.erased_at IS NOT NULL) EXECUTE FUNCTION chaos.watch_erasure();
  CREATE FUNCTION chaos.watch_lane() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO chaos.overtaken
    SELECT format('P5: the %s lane of %s was taken over while %s wrote a page under it', NEW.lane, NEW.name, s.application_name),
      s.backend_xid::text::xid8
    FROM intake.advertisers v
    JOIN pg_locks a ON a.locktype = 'advisory' AND a.granted AND a.classid = 1 AND a.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND a.objid = (hashint8(v.advertiser_id)::bigint & 4294967295)::oid
      AND a.mode = CASE NEW.lane WHEN 'live' THEN 'ExclusiveLock' ELSE 'ShareLock' END
    -- Pages and erasures write the sweeps table; lookSql excludes the erasures.
    JOIN pg_locks w ON w.pid = a.pid AND w.locktype = 'relation' AND w.mode = 'RowExclusiveLock' AND w.granted
      AND w.relation = 'intake.sweeps'::regclass
    JOIN pg_stat_activity s ON s.pid = a.pid AND s.backend_xid IS NOT NULL
    WHERE v.name = NEW.name AND a.pid <> pg_backend_pid() LIMIT 1;
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_lane BEFORE UPDATE ON intake.leases FOR EACH ROW
    WHEN (NEW.epoch <> OLD.epoch AND NEW.owner <> OLD.owner) EXECUTE FUNCTION chaos.watch_lane();
  -- Accounts halted because of their credential. The source's request log shows whether their list was refused.
  CREATE TABLE chaos.halts (advertiser_id text, at timestamptz NOT NULL);
  CREATE FUNCTION chaos.watch_halt() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO chaos.halts VALUES (NEW.advertiser_id::text, clock_timestamp());
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_halt AFTER UPDATE ON intake.advertisers FOR EACH ROW
    WHEN (NEW.halt_kind = 'refused' AND OLD.halt_kind IS NULL) EXECUTE FUNCTION chaos.watch_halt()`;

/** Installs the triggers. Needs the schema. */
export async function startWatching({ query }: Pick<Cluster, 'query'>): Promise<void> {
  await query(watchSql);
}

const lookSql = `
  SELECT promise FROM chaos.broken b WHERE NOT EXISTS (
    SELECT 1 FROM intake.applications a WHERE a.application_id = b.application_id AND a.erased_at IS NOT NULL)
  UNION ALL
  SELECT promise FROM chaos.overtaken WHERE pg_xact_status(xact) = 'committed' AND xact NOT IN (SELECT xact FROM chaos.erasures)
  UNION ALL
  SELECT format('P2, P4: application %s has %s application.received events', a.application_id, count(e.event_id))
  FROM intake.applications a LEFT JOIN intake.events e ON e.advertiser_id = a.advertiser_id
    AND e.application_id = a.application_id AND e.type = 'application.received'
  GROUP BY a.advertiser_id, a.application_id HAVING count(e.event_id) <> 1
  UNION ALL
  SELECT format('P4: %s of %s is pending and not in the queue', f.kind, f.application_id) FROM intake.attachments f
  WHERE f.state = 'pending' AND NOT EXISTS (SELECT 1 FROM intake.downloads d
    WHERE (d.advertiser_id, d.application_id, d.kind) = (f.advertiser_id, f.application_id, f.kind))
  UNION ALL
  -- A queued file that is not pending is fetched again because its Hash changed. A flagged file is never fetched again.
  SELECT format('P4: %s of %s is %s and still in the queue', f.kind, f.application_id, f.state)
  FROM intake.downloads d JOIN intake.attachments f USING (advertiser_id, application_id, kind)
  WHERE f.state = 'erased' OR f.state = 'infected' AND f.has_virus
  UNION ALL
  SELECT format('P26: the last event of %s is %s, and it is %s', a.application_id, e.type, CASE WHEN a.erased_at IS NOT NULL THEN 'erased'
    WHEN a.missing_since IS NOT NULL THEN 'missing' WHEN a.ready_at IS NOT NULL THEN 'ready' ELSE 'not ready' END)
  FROM intake.applications a JOIN (
    SELECT DISTINCT ON (advertiser_id, application_id) * FROM intake.events ORDER BY advertiser_id, application_id, event_id DESC
  ) AS e USING (advertiser_id, application_id)
  WHERE CASE WHEN a.erased_at IS NOT NULL THEN e.type <> 'application.erased'
    WHEN a.missing_since IS NOT NULL THEN e.type <> 'application.missing'
    WHEN a.ready_at IS NOT NULL THEN e.type NOT IN ('application.ready', 'application.changed')
    ELSE e.type NOT IN ('application.received', 'application.changed') END
  UNION ALL
  SELECT format('P4: application %s is %s ready', a.application_id, CASE WHEN a.ready_at IS NULL THEN 'not' ELSE 'wrongly' END)
  FROM intake.applications a WHERE a.erased_at IS NULL AND (a.ready_at IS NOT NULL) = EXISTS (SELECT 1 FROM intake.attachments f
    WHERE f.advertiser_id = a.advertiser_id AND f.application_id = a.application_id AND f.state = 'pending')
  UNION ALL
  -- Until an application is ready, a stored file causes no event. After that, every change of facts does.
  SELECT format('P26: application %s has changed since its last event: it is %s, and was told as %s', a.application_id, chaos.facts(a), t.facts)
  FROM intake.applications a JOIN chaos.told t USING (advertiser_id, application_id)
  WHERE a.ready_at IS NOT NULL AND t.facts <> chaos.facts(a)
  UNION ALL
  SELECT format('P6: %s of %s is stored without a blob', f.kind, f.application_id) FROM intake.attachments f
  WHERE f.state = 'stored' AND NOT EXISTS (SELECT 1 FROM intake.blobs b
    WHERE b.advertiser_id = f.advertiser_id AND b.sha256 = f.sha256 AND b.state = 'stored')
  UNION ALL
  SELECT format('P8: %s of %s is flagged and stored', kind, application_id) FROM intake.attachments WHERE has_virus AND state = 'stored'
  UNION ALL
  SELECT format('P8: %s of %s is readable although its bytes are infected', f.kind, f.application_id) FROM intake.attachments f
  JOIN intake.blobs b USING (advertiser_id, sha256) WHERE f.state = 'stored' AND b.state = 'infected'
  UNION ALL
  SELECT format('P8: %s of %s is stored with the bytes that the flag on %s is about', f.kind, f.application_id, g.application_id)
  FROM intake.attachments f JOIN intake.attachments g USING (advertiser_id, sha256) WHERE f.state = 'stored' AND g.has_virus
  UNION ALL
  SELECT format('P29: the count of %s is wrong by %s', what, -sum(n)) FROM (
    SELECT advertiser_id, what, n FROM intake.recounted UNION ALL SELECT advertiser_id, what, -n FROM intake.tallies) AS compared
  GROUP BY advertiser_id, what HAVING sum(n) <> 0
  UNION ALL
  SELECT format('P29: %s are wrong', wrong) FROM (${wrongDaysSql}) AS days
  UNION ALL
  SELECT format('P4: the cursor stands at %s, which is no application', c.after_id) FROM intake.cursors c
  WHERE NOT EXISTS (SELECT 1 FROM intake.applications a WHERE a.advertiser_id = c.advertiser_id AND a.application_id = c.after_id)
  LIMIT 5`;

/** Finds the promises that are broken now. Throws while the database is unavailable. */
export async function findBroken(stage: Stage): Promise<string[]> {
  const { query } = stage.cluster;
  const broken = (await query<{ promise: string }>(lookSql)).map(({ promise }) => promise);
  const [cursors] = await query<{ held: { advertiser_id: string; after_id: string; ids: string[] }[] | null }>(
    `SELECT json_agg(json_build_object('advertiser_id', c.advertiser_id::text, 'after_id', c.after_id::text, 'ids',
       (SELECT json_agg(a.application_id::text) FROM intake.applications a WHERE a.advertiser_id = c.advertiser_id))) AS held
     FROM intake.cursors c`,
  );
  for (const { advertiser_id, after_id, ids } of cursors?.held ?? []) {
    const account = stage.accounts.find((one) => String(one.advertiserId) === advertiser_id);
    const held = new Set(ids);
    for (const { id } of account?.truth() ?? []) {
      if (id > BigInt(after_id) || stage.workload.late.has(id) || held.has(String(id))) continue;
      broken.push(`P4: the cursor stands at ${after_id}, beyond application ${id}, which is not stored`);
      break;
    }
  }
  const found = [
    findChangingElements(stage),
    findWithoutBytes(stage),
    findStrangeBytes(stage),
    findEarlierUploads(stage),
    findStrangeHalts(stage),
    findReadableViruses(stage),
  ];
  return [...broken, ...(await Promise.all(found)).flat()];
}

/** A worker that is paused, or whose database is unavailable, halts its account some time after the answer, longer on a busy machine. */
const haltAfterMs = 180_000;

/** Finds accounts that were halted for their credential although their list was not refused. A refused file must not halt an account. */
async function findStrangeHalts({ cluster, requests }: Stage): Promise<string[]> {
  const halts = await cluster.query<{ advertiser_id: string | null; at: Date }>(`SELECT * FROM chaos.halts`);
  const refusals = requests().filter(
    ({ path, status }) => path.endsWith('/applications') && [401, 403].includes(status),
  );
  const isExplained = (halt: (typeof halts)[number]) =>
    refusals.some(
      ({ advertiserId, at }) =>
        String(advertiserId) === halt.advertiser_id && Math.abs(halt.at.getTime() - at) < haltAfterMs,
    );
  return halts
    .filter((halt) => !isExplained(halt))
    .map(({ advertiser_id }) => `P11: account ${advertiser_id} was halted, and its list was not refused`);
}

/**
 * Finds infected objects in the store a minute after the flag was read. Checked only in plans without faults outside the source: workers
 * that are killed or disconnected repeatedly may take longer.
 */
async function findReadableViruses({ cluster, s3, plan }: Stage): Promise<string[]> {
  if (plan.schedule.some(({ name }) => faults[name]?.class !== 'source')) return [];
  const rows = await cluster.query<{ key: string }>(
    `SELECT key FROM intake.blobs WHERE state = 'infected' AND infected_at < now() - interval '1 minute'`,
  );
  const readable = rows.filter(({ key }) => [...s3.objects.keys()].some((name) => name.endsWith(key)));
  return readable.slice(0, 3).map(({ key }) => `P8: ${key} is readable a minute after it was flagged`);
}

const firstFiles = new WeakMap<Stage, Map<string, string | null>>();

/** Finds stored files whose bytes the source never served for them: truncated files, and files of another application. */
async function findStrangeBytes(stage: Stage): Promise<string[]> {
  const rows = await stage.cluster.query<{ application_id: string; kind: string; sha256: string; facts: unknown }>(
    `SELECT a.application_id, a.kind, a.sha256, jsonb_build_object('size', a.size_bytes, 'stored', b.size_bytes, 'notes', a.notes,
       'linked', a.linked, 'version', a.version) AS facts
     FROM intake.attachments a LEFT JOIN intake.blobs b USING (advertiser_id, sha256) WHERE a.state = 'stored' AND a.kind <> 'screen'`,
  );
  const first = firstFiles.get(stage) ?? new Map<string, string | null>();
  firstFiles.set(stage, first);
  for (const account of stage.accounts) {
    for (const { id, attachments } of account.truth()) {
      for (const { kind, sha256 } of attachments) {
        const name = `${id}/${kind}`;
        // A flagged file has no bytes, so its entry is null. If a change lifts the flag, workload.digests contains the new digest.
        if (first.get(name) === undefined) first.set(name, sha256);
      }
    }
  }
  const strange = rows.filter(({ application_id, kind, sha256 }) => {
    const known = first.get(`${application_id}/${kind}`);
    return known !== undefined && known !== sha256 && !stage.workload.digests.has(sha256);
  });
  return strange
    .slice(0, 3)
    .map(
      ({ application_id, kind, facts }) =>
        `P6: the bytes of ${kind} of ${application_id} are none that the source ever had: ${JSON.stringify(facts)}`,
    );
}

/** Finds stored files that have the current upload time and the bytes of another upload. */
async function findEarlierUploads({ cluster, accounts }: Stage): Promise<string[]> {
  const rows = await cluster.query<{ application_id: string; kind: string; sha256: string; uploaded_at: Date | null }>(
    `SELECT application_id, kind, sha256, uploaded_at FROM intake.attachments WHERE state = 'stored' AND kind <> 'screen'`,
  );
  const held = new Map(rows.map((row) => [`${row.application_id}/${row.kind}`, row]));
  const shown = accounts.flatMap((account) =>
    [...account.truth()].flatMap(({ id, attachments }) => attachments.map((one) => ({ id, ...one }))),
  );
  const earlier = shown.filter(({ id, kind, sha256, uploadedAt }) => {
    const row = held.get(`${id}/${kind}`);
    return sha256 !== null && row?.uploaded_at?.getTime() === uploadedAt && row.sha256 !== sha256;
  });
  return earlier
    .slice(0, 3)
    .map(({ id, kind }) => `P6: ${kind} of ${id} is stored with the bytes of an earlier upload`);
}

const digests = new WeakMap<Buffer, string>();

/** Finds stored files whose object is absent or has other bytes or another size. Looks twice, since a file may just have been flagged. */
async function findWithoutBytes({ cluster, s3, lostKeys }: Stage): Promise<string[]> {
  const sql = `SELECT DISTINCT b.key, b.sha256, b.size_bytes FROM intake.attachments f JOIN intake.blobs b USING (advertiser_id, sha256)
    WHERE f.state = 'stored' AND b.state = 'stored'`;
  type Row = { key: string; sha256: string; size_bytes: string };
  const isBare = ({ key, sha256, size_bytes }: Row) => {
    const name = [...s3.objects.keys()].find((one) => one.endsWith(key));
    const object = name === undefined ? undefined : s3.objects.get(name);
    if (!object) return ![...lostKeys].some((lost) => lost.endsWith(key));
    const digest = digests.get(object.bytes) ?? createHash('sha256').update(object.bytes).digest('hex');
    digests.set(object.bytes, digest);
    return digest !== sha256 || object.bytes.length !== Number(size_bytes);
  };
  const bare = (await cluster.query<Row>(sql)).filter(isBare);
  if (bare.length === 0) return [];
  const still = (await cluster.query<Row>(sql)).filter(isBare);
  return still.slice(0, 3).map(({ key }) => `P6: ${key} is called stored, and its bytes are not there`);
}
