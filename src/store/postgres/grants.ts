// Renders the database roles and their privileges as SQL for a DBA: five roles, each with the least it needs. The SQL names the tables and
// views that exist, so that every statement can be read before it runs. It contains no login and no password.
import type { Queryable } from './database.ts';

/** Views without personal data, for the analyst role. A view that is in neither list is granted to no analyst. */
export const anonymousViews: readonly string[] = [
  ...['applications_anonymous', 'applications_daily', 'applications_weekly', 'events', 'jobs', 'job_seekers'],
  ...['screening_outcomes', 'screening_answers', 'answer_distribution', 'attachments', 'attachment_problems'],
  ...['ingest_delay_daily', 'completeness', 'sweeps', 'data_quality', 'prefill_funnel_daily'],
  ...['prefill_applications', 'fingerprints'],
];

/** Views that show who applied and what they typed. */
export const personalViews: readonly string[] = ['applications', 'screening_free_text'];

/** What the public port reads: the schema's version, its accounts, the store's owner, and whom an erasure keeps out. */
const prefillReads: readonly string[] = ['migrations', 'advertisers', 'blob_store', 'erasures', 'erasure_jobs'];

/** Append-only tables: the audit log and the tombstones of erased data. */
const lastingTables: readonly string[] = ['audit_log', 'erasures'];

/** The roles, without their prefix. */
export const roles = ['owner', 'worker', 'analyst', 'analyst_personal', 'web'] as const;

interface Relation {
  readonly schema: 'intake' | 'intake_analytics';
  /** Quoted where SQL needs it. */
  readonly name: string;
  readonly kind: 'TABLE' | 'VIEW' | 'SEQUENCE' | 'FUNCTION';
}

/** Returns the SQL that creates the roles and grants each what it needs in this database. Running it again changes nothing. */
export async function loadGrantsSql(db: Queryable, prefix: string): Promise<string> {
  const relations = await db.query<Relation & Record<string, unknown>>(
    `SELECT n.nspname AS schema, quote_ident(c.relname) AS name,
       CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname IN ('intake', 'intake_analytics') AND c.relkind IN ('r', 'p', 'v', 'S')
       AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND c.relkind = 'S' AND d.deptype IN ('a', 'i'))
     UNION ALL
     SELECT n.nspname, format('%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid)), 'FUNCTION'
     FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('intake', 'intake_analytics')
     ORDER BY schema, kind, name`,
  );
  const [place] = await db.query<{ database: string }>(`SELECT quote_ident(current_database()) AS database`);
  const [owner, worker, analyst, personal, web] = roles.map((role) => `${prefix}_${role}`);
  const all = [worker, analyst, personal, web].join(', ');
  const named = ({ schema, name }: Relation) => `${schema}.${name}`;
  const some = (schema: Relation['schema'], kind: Relation['kind'], names?: readonly string[]) =>
    relations
      .filter((one) => one.schema === schema && one.kind === kind && (names?.includes(one.name) ?? true))
      .map(named);
  const lasting = some('intake', 'TABLE', lastingTables);
  const tables = some('intake', 'TABLE').filter((name) => name !== 'intake.migrations' && !lasting.includes(name));

  return `-- The roles of Intake. Read, then run as a role that may create roles and owns (or is a superuser over) the two schemas.
-- None of them can log in: create logins of your own and grant them these. Safe to run again; run it after every upgrade.
BEGIN;
DO $$ DECLARE name text; BEGIN
  FOREACH name IN ARRAY ARRAY['${owner}', '${worker}', '${analyst}', '${personal}', '${web}'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', name); END IF;
  END LOOP;
END $$;

-- Revokes the grants of earlier runs first, so that only the grants below are in force.
REVOKE ALL ON SCHEMA intake, intake_analytics FROM PUBLIC, ${all};
REVOKE ALL ON ALL TABLES IN SCHEMA intake, intake_analytics FROM PUBLIC, ${all};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA intake, intake_analytics FROM PUBLIC, ${all};

-- ${owner}: owns everything and runs migrations. The role that runs this script must be a member of it to transfer ownership.
GRANT ${owner} TO CURRENT_USER;
GRANT CREATE ON DATABASE ${place?.database} TO ${owner};
ALTER SCHEMA intake OWNER TO ${owner};
ALTER SCHEMA intake_analytics OWNER TO ${owner};
${relations.map((one) => `ALTER ${one.kind} ${named(one)} OWNER TO ${owner};`).join('\n')}

-- ${worker}: reads and writes rows, also of tables that later migrations add.
-- It cannot create, alter, drop or truncate, nor change the audit log.
GRANT USAGE ON SCHEMA intake, intake_analytics TO ${worker};
GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables.join(', ')} TO ${worker};
GRANT SELECT, INSERT ON ${lasting.join(', ')} TO ${worker};
-- A repeated erasure request renews its tombstone; the keyed hash itself cannot be changed.
GRANT UPDATE (job_id, erased_at, future) ON intake.erasures TO ${worker};
GRANT SELECT ON ${['intake.migrations', ...some('intake', 'VIEW'), ...some('intake_analytics', 'VIEW')].join(', ')} TO ${worker};
GRANT USAGE, SELECT ON SEQUENCE ${some('intake', 'SEQUENCE').join(', ')} TO ${worker};
ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA intake GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${worker};
ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA intake GRANT USAGE, SELECT ON SEQUENCES TO ${worker};
ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA intake_analytics GRANT SELECT ON TABLES TO ${worker};

-- ${analyst}: the views that name nobody, and nothing else.
GRANT USAGE ON SCHEMA intake_analytics TO ${analyst};
GRANT SELECT ON ${some('intake_analytics', 'VIEW', anonymousViews).join(', ')} TO ${analyst};

-- ${personal}: the same, and the views with personal data.
GRANT ${analyst} TO ${personal};
GRANT SELECT ON ${some('intake_analytics', 'VIEW', personalViews).join(', ')} TO ${personal};

-- ${web}: writes the prefill tables and adds blobs; reads its accounts, the store's owner and whom an erasure keeps out.
-- It cannot change which blobs are infected or being deleted.
GRANT USAGE ON SCHEMA intake TO ${web};
GRANT SELECT ON ${some('intake', 'TABLE', prefillReads).join(', ')} TO ${web};
GRANT UPDATE (kept_out) ON intake.advertisers TO ${web};
GRANT SELECT, INSERT, UPDATE ON intake.prefills, intake.oauth_states TO ${web};
GRANT SELECT, INSERT, UPDATE, DELETE ON intake.processes TO ${web};
GRANT SELECT, INSERT (advertiser_id, sha256, size_bytes, key, state), UPDATE (state, size_bytes, intended_at, verified_at)
  ON intake.blobs TO ${web};
COMMIT;
`;
}
