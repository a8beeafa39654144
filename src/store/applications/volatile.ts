// What differs although nothing else does is no change: a Hash that the source computes anew, or an address with a signature. A member is
// volatile once it has differed for three applications of an advertiser, or between three answers for an element without an id.
import type { MemberHashes } from '../../domain/application.ts';
import { mostUnchanged } from '../../domain/download-verdict.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';

const enough = 3;
/** The most members that are watched, whatever names the source invents. */
const mostWatched = 1_000;

/** True where the facts of `a` and `p` are equal, whatever their attachments' Hash and Href and the members that the spec does not name. */
export const hasSameFacts = `substring(a.facts_hash FOR 16) IS NOT DISTINCT FROM substring(decode(p.facts, 'hex') FOR 16)`;

/** False once Hash has changed three times while the bytes did not: then it no longer signals changes. $1 is the advertiser. */
export const isHashSignal = `NOT EXISTS (
  SELECT 1 FROM intake.hash_trust t WHERE t.advertiser_id = $1 AND t.unchanged >= ${mostUnchanged})`;

export const volatileNames = (advertiser: string) => `ARRAY(
  SELECT m.member FROM intake.volatile_members m WHERE m.advertiser_id = ${advertiser} AND cardinality(m.seen) >= ${enough})`;

/** Members that both have, with other values. */
export function toDiffering(before: MemberHashes, after: MemberHashes): string[] {
  return Object.keys(before).filter((name) => Object.hasOwn(after, name) && before[name] !== after[name]);
}

/** The content of an element, or of what is not volatile in it, as one text. */
export function toContent(members: MemberHashes, volatile: ReadonlySet<string> | null = null): string {
  const kept = Object.entries(members).filter(([name]) => !volatile?.has(name));
  return JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Records differences, each with the application or element that it was seen at, and returns the volatile members by now. */
export async function learnVolatile(tx: Queryable, advertiserId: bigint, found: Record<'member' | 'who', string>[]) {
  if (found.length > 0) {
    await tx.query(
      `INSERT INTO intake.volatile_members AS v (advertiser_id, member, seen)
       SELECT $1, d.member, (array_agg(DISTINCT d.who))[1:${enough}] FROM unnest($2::text[], $3::text[]) AS d (member, who)
       WHERE (SELECT count(*) FROM intake.volatile_members w WHERE w.advertiser_id = $1) < ${mostWatched}
       GROUP BY d.member ORDER BY d.member
       ON CONFLICT (advertiser_id, member) DO UPDATE
         SET seen = (SELECT (array_agg(DISTINCT s))[1:${enough}] FROM unnest(v.seen || excluded.seen) AS s)
         WHERE cardinality(v.seen) < ${enough}`,
      [advertiserId, ...columnsOf(found, 'member', 'who')],
    );
  }
  return new Set(await loadVolatile(tx, advertiserId));
}

export async function loadVolatile(db: Queryable, advertiserId: bigint | null): Promise<string[]> {
  const [row] = await db.query<{ names: string[] }>(`SELECT ${volatileNames('$1::bigint')} AS names`, [advertiserId]);
  return row?.names ?? [];
}
