// What `intake doctor` looks at, one finding per check: can the database and the source be used, and what is the source like?
// Asks one harmless question of each source; stores nothing.
import { assumptions } from '../domain/certificate.ts';
import { SettingTrouble, Trouble } from '../domain/trouble.ts';
import type { Source } from '../source/client.ts';
import type { Learned } from '../store/resume.ts';
import type { Store } from '../store/store.ts';

/** One thing that was looked at. `trouble` carries what went wrong, for the exit code. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly trouble?: unknown;
}

/** The database: reachable, of this version's schema, its clock near ours. */
export async function examineDatabase(store: Store, now: () => number): Promise<Finding[]> {
  const askedAt = now();
  try {
    const server = await store.loadServer();
    const skewMs = Math.abs(server.now.getTime() - (askedAt + now()) / 2);
    return [
      {
        check: 'database',
        ok: true,
        detail: `Postgres ${server.version}, answers in ${Math.round(now() - askedAt)} ms`,
      },
      {
        check: 'schema',
        ok: server.schema === 'current',
        detail: server.schema === 'current' ? 'current' : `${server.schema}: run intake migrate`,
      },
      {
        check: 'clock',
        ok: skewMs < 60_000,
        detail: `${Math.round(skewMs)} ms from the database's${skewMs < 60_000 ? '' : '; times in logs will mislead, set this machine right'}`,
      },
    ];
  } catch (trouble) {
    return [{ check: 'database', ok: false, detail: toWords(trouble), trouble }];
  }
}

const keyWords = {
  matches: 'made the person keys and tombstones of this database',
  untried: 'nothing in this database was made with a key yet',
  differs:
    'is not the one that this database was filled with: erased people could return. Set the earlier key, or restore it from your secrets',
};

/** Whether PRIVACY_KEY is the one that this database was filled with. */
export async function examineKey(store: Store): Promise<Finding> {
  const state = await store.loadKeyState();
  return {
    check: 'PRIVACY_KEY',
    ok: state !== 'differs',
    detail: keyWords[state],
    ...(state === 'differs' && { trouble: new SettingTrouble('PRIVACY_KEY is not the key of this database.') }),
  };
}

export interface SourceExamination {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly signal: AbortSignal;
}

/** One account: the credential opens the door, the answer is ours, and what earlier sweeps have learned. */
export async function examineSource(store: Store, source: Source, request: SourceExamination): Promise<Finding[]> {
  const { name, signal } = request;
  const findings: Finding[] = [];
  try {
    const { advertiserId } = await store.ensureAdvertiser(name, request.advertiserId);
    const { learned, pollFrom } = await store.loadReading(advertiserId, 0);
    const answer = await source.list({ afterId: pollFrom === null ? 0n : pollFrom - 1n }, signal);
    const told = answer.kind === 'page' ? answer.page.advertiserId : null;
    const isOurs = told === null || advertiserId === null || told === advertiserId;
    findings.push({ check: `${name}: credential`, ok: true, detail: 'accepted' });
    findings.push({
      check: `${name}: advertiser`,
      ok: isOurs,
      detail: isOurs
        ? `${told ?? advertiserId ?? 'not told'}`
        : `the source answers for ${told}, expected ${advertiserId}`,
      ...(!isOurs && { trouble: new Trouble('mismatch', `${name} answers for another advertiser.`) }),
    });
    findings.push({
      check: `${name}: learned`,
      ok: true,
      detail: learned ? toLearnedWords(learned) : 'nothing yet: run intake sync',
    });
  } catch (trouble) {
    signal.throwIfAborted();
    findings.push({ check: `${name}: source`, ok: false, detail: toWords(trouble), trouble });
  }
  return findings;
}

function toLearnedWords({ order, capacity, together, inclusiveAfter, inclusiveBefore }: Learned): string {
  return [
    order === 'mixed' ? 'lists in no order' : `lists in ${order} order`,
    `largest page seen ${capacity.count} applications`,
    together
      ? 'honours afterid and beforeid together'
      : 'does not honour afterid and beforeid together: nothing can be proven by them',
    `afterid ${inclusiveAfter ? 'includes' : 'excludes'} the id itself, beforeid ${inclusiveBefore ? 'includes' : 'excludes'} it`,
    together ? `proven rests on: ${assumptions.join(' ')}` : '',
  ]
    .filter(Boolean)
    .join('; ');
}

function toWords(trouble: unknown): string {
  return trouble instanceof Trouble ? trouble.message : 'failed in a way that was not foreseen';
}
