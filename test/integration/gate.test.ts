import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Sought } from '../../src/domain/erasure.ts';
import { findAddresses } from '../../src/domain/person.ts';
import { parseElement, toElement } from '../../src/source/parse/list.ts';
import { parseScreens } from '../../src/source/parse/screen.ts';
import { mayStore } from '../../src/store/gate.ts';
import { openDatabase, type Queryable } from '../../src/store/postgres/database.ts';
import { reparse } from '../../src/sync/files/reparse.ts';
import { finishErasures, retain } from '../../src/sync/privacy/erase.ts';
import { replay } from '../../src/sync/read/replay-quarantine.ts';
import { shareDatabase } from '../support/database/test-database.ts';
import { visit } from '../support/prefill/prefill-visit.ts';
import { callIntake } from '../support/processes/intake.ts';
import { testPrivacyKey, toEnvironment } from '../support/processes/syncing.ts';
import { eraseAt, openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { testFirst } from '../support/suite/variants.ts';
import { findZelda, zelda } from '../support/zelda.ts';

const database = shareDatabase();
const signal = AbortSignal.timeout(600_000);

const screens = [
  { id: 'S1', name: 'Screen', successful: true, questions: [{ id: 'Q1', type: 'Text', text: 'Why?', answers: [] }] },
];
const byId = (applicationId: bigint): Sought => ({ by: 'application', applicationId });
const byAddress: Sought = { by: 'address', email: zelda.email };
const byAccount: Sought = { by: 'jobseeker', jobSeekerId: zelda.jobSeekerId };

async function openWithZelda() {
  const intake = await openSmallIntake({ database });
  const [id = 0n] = intake.board.add([{ ...zelda, attachments: [{ kind: 'screen' }], screens }, { attachments: [] }]);
  await intake.sweep();
  return { ...intake, id };
}

const keptOut = async () =>
  Number((await database.query<{ n: string }>(`SELECT sum(kept_out) AS n FROM intake.advertisers`))[0]?.n);
const show = ({ board }: SmallIntake, json: string) => board.fault({ kind: 'poison', on: 'list', times: null, json });

/** An element that an earlier version could not parse. */
const addElement = ({ board }: SmallIntake, fingerprint: string, raw: Record<string, unknown>) =>
  database.query(
    `INSERT INTO intake.quarantine (advertiser_id, fingerprint, reason, raw, sweep_id) VALUES ($1, decode($2, 'hex'), 'test', $3, 1)`,
    [board.advertiserId, fingerprint, raw],
  );

function replayAt({ store, board: { advertiserId } }: Pick<SmallIntake, 'store' | 'board'>) {
  const request = { name: 'default', advertiserId, owner: 'test', leaseMs: 30_000, signal };
  return replay({ store, source: { parseElement, toElement } }, request);
}

/** A candidate shares this profile; true if it is kept. */
const keep = async (intake: SmallIntake, profile: Record<string, unknown>) =>
  (await visit(intake, { profile })).handle !== null;

describe('an erased person whom the source sends again without a usable id', () => {
  const members = `"FirstName":"Zeldabeth","LastName":"Quarlesworth"`;
  testFirst<[string, (id: bigint) => Sought, string]>([
    ['application, by the account', byId, `"JobSeekerID":"${zelda.jobSeekerId}"`],
    ['application, by the address', byId, `"Email":"${zelda.email}"`],
    ['application, however the address is typed', byId, `"Email":"Z <ZELDA.Quarlesworth@example.com>"`],
    ['address, by the account', () => byAddress, `"JobSeekerID":"${zelda.jobSeekerId}"`],
    ['account, by the address', () => byAccount, `"Email":"${zelda.email}"`],
  ])('is not in quarantine after an erasure by %s; it is counted', async ([, toSought, named]) => {
    await using intake = await openWithZelda();
    const { id } = intake;
    await eraseAt(intake, toSought(id));
    expect(await keptOut()).toBe(0);
    show(intake, `{"ID":"${id}x",${named},${members}}`);
    show(intake, `{"ID":"none","Email":"somebody.else@example.com"}`);
    await intake.sweep(true);
    expect(await findZelda(intake)).toEqual([]);
    expect(await database.query(`SELECT raw->>'Email' AS email FROM intake.quarantine`)).toEqual([
      { email: 'somebody.else@example.com' },
    ]);
    expect(await keptOut()).toBeGreaterThan(0);
  });

  test('is kept out by an address behind a thousand others, which the gate does not read', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byAddress);
    const crowd = Array.from({ length: 1_001 }, (_, at) => `p${at}@example.com`).join(' ');
    show(intake, `{"ID":"none","Note":"${crowd} ${zelda.email}"}`);
    await intake.sweep(true);
    expect(await findZelda(intake)).toEqual([]);
    expect(await keptOut()).toBeGreaterThan(0);
  });

  test('is found among elements that name thousands of people; no statement asks for all of them', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byAddress);
    await using db = openDatabase({ url: database.url, role: 'test' });
    const sizes: number[] = [];
    const watched: Queryable = {
      async query(sql, values) {
        sizes.push(...(values ?? []).flatMap((value) => (Array.isArray(value) ? value.length : [])));
        return await db.query(sql, values);
      },
    };
    // Behind an address without a space, one may begin at each sign.
    const crowd = Array.from({ length: 10 }, (_, at) => `@p${at}${'!'.repeat(90)}`).join('');
    const people = Array.from({ length: 40 }, (_, at) => ({
      accounts: [],
      addresses: [...findAddresses(`${crowd}${at}@a`), ...(at === 33 ? [zelda.email] : [])],
    }));
    const key = createSecretKey(Buffer.from(testPrivacyKey));
    const may = await mayStore({ db: watched, privacyKey: key, advertiserId: intake.board.advertiserId }, people);
    expect(may.flatMap((one, at) => (one ? [] : at))).toEqual([33]);
    expect(people.flatMap(({ addresses }) => addresses).length).toBeGreaterThan(30_000);
    expect(Math.max(...sizes)).toBeLessThan(12_000);
  });

  test('is deleted from quarantine if an earlier release has stored the element', async () => {
    await using intake = await openWithZelda();
    const { id } = intake;
    show(intake, `{"ID":"${id}x","Email":"${zelda.email}",${members}}`);
    await intake.sweep(true);
    expect(await database.query(`SELECT 1 FROM intake.quarantine`)).toHaveLength(1);
    await database.query(`CREATE TABLE public.elements AS SELECT * FROM intake.quarantine`);
    await eraseAt(intake, { by: 'application', applicationId: id });
    expect(await database.query(`SELECT 1 FROM intake.quarantine`)).toEqual([]);
    await database.query(`INSERT INTO intake.quarantine SELECT * FROM public.elements; DROP TABLE public.elements`);
    await intake.sweep(true);
    expect(await findZelda(intake)).toEqual([]);
  });
});

describe('the id of an erased application', () => {
  const bob = {
    email: 'bob@example.com',
    jobSeekerId: 'bob',
    firstName: 'Bob',
    lastName: 'Birch',
    phone: '0491 570 156',
    jobSeekingInfo: null,
  };
  const bobs = (id: bigint, members: string) => `{"ID":${id},"FirstName":"Bob","LastName":"Birch"${members}}`;
  const quarantined = () => database.query(`SELECT raw->>'FirstName' AS name, reason FROM intake.quarantine`);
  const inQuarantine = [{ name: 'Bob', reason: 'ID names another person as well' }];

  testFirst<[string, (id: bigint) => Sought]>([
    ['application', byId],
    ['address', () => byAddress],
    ['account', () => byAccount],
  ])(
    'keeps nobody else out: another person waits in quarantine, alone or beside the erased one, by %s',
    async ([, toSought]) => {
      await using intake = await openWithZelda();
      await eraseAt(intake, toSought(intake.id));
      intake.board.change(intake.id, bob);
      await intake.sweep(true);
      expect(await quarantined()).toEqual(inQuarantine);
      intake.board.change(intake.id, zelda);
      show(intake, bobs(intake.id, `,"Email":"${bob.email}","JobSeekerID":"bob"`));
      await intake.sweep(true);
      expect(await quarantined()).toContainEqual(inQuarantine[0]);
      expect(await findZelda(intake)).toEqual([]);
      expect(await loadErased(intake.id)).toEqual([{ erased: true }]);
    },
  );

  test.for([
    ['an account and an address of which one is erased', { ...bob, email: zelda.email }],
    ['an account and an address of which the other is erased', { ...bob, jobSeekerId: zelda.jobSeekerId }],
    ['neither account nor address', { ...bob, jobSeekerId: '', email: '' }],
  ] as const)('keeps out who has %s, and writes nothing of it', async ([, facts]) => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byId(intake.id));
    const before = await keptOut();
    intake.board.change(intake.id, facts);
    await intake.sweep(true);
    expect([await quarantined(), await keptOut()]).toEqual([[], before]);
  });

  test('does not take the element of another person from quarantine by a replay; that of the erased one goes', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byId(intake.id));
    await addElement(intake, '00', { ID: Number(intake.id), Email: bob.email, FirstName: 'Bob', LastName: 'Birch' });
    await addElement(intake, '01', { ID: Number(intake.id), Email: zelda.email, LastName: zelda.lastName });
    expect(await replayAt(intake)).toMatchObject({ added: 0, unusable: 1 });
    expect(await quarantined()).toEqual([{ name: 'Bob', reason: 'test' }]);
    expect(await findZelda(intake)).toEqual([]);
  });

  test('that RETENTION has emptied keeps its person out: nothing tells who that was', async () => {
    await using intake = await openWithZelda();
    await database.query(`UPDATE intake.applications SET submitted_at = '2020-01-01Z', first_seen_at = '2020-01-01Z'
      WHERE email IS NOT NULL AND job_seeker_id = 'seeker-zq-7788'`);
    await eraseAt(intake, { by: 'retention', before: new Date('2021-01-01Z'), limit: 100 });
    await intake.sweep(true);
    expect([await quarantined(), await findZelda(intake)]).toEqual([[], []]);
  });
});

describe('an erasure of one application', () => {
  testFirst<[string, string, number]>([
    ['names her by phone alone', `"FirstName":"Zeldabeth","Phone":"${zelda.phone}","LastName":"Other"`, 1],
    ['has another account', `"JobSeekerID":"bob","Email":"bob@example.com"`, 0],
    ['has another address', `"Email":"bob@example.com"`, 0],
  ])(
    'takes an element with the same id along, unless it is clearly of another person: one that %s',
    async ([, members, quarantined]) => {
      await using intake = await openWithZelda();
      show(intake, `{"ID":${intake.id},${members}}`);
      await intake.sweep(true);
      const elements = await database.query(
        `SELECT 1 FROM intake.quarantine WHERE reason = 'ID names another person as well'`,
      );
      expect(elements).toHaveLength(1);
      expect(await eraseAt(intake, byId(intake.id))).toMatchObject([{ counts: { applications: 1, quarantined } }]);
      await intake.sweep(true);
      expect(await database.query(`SELECT 1 FROM intake.quarantine`)).toHaveLength(1 - quarantined);
      expect(await findZelda(intake)).toEqual([]);
    },
  );

  testFirst<[string, string, Record<string, unknown>]>([
    ['address', `"Email":"${zelda.email}"`, { applicantInfo: { emailAddress: zelda.email } }],
    ['account', `"JobSeekerID":"${zelda.jobSeekerId}"`, { jobSeekerId: zelda.jobSeekerId }],
  ])('takes what names its %s along, and no other application', async ([, named, profile]) => {
    await using intake = await openWithZelda();
    const [other = 0n] = intake.board.add([{ ...zelda, attachments: [] }]);
    show(intake, `{"ID":"${intake.id}x",${named}}`);
    show(intake, `{"ID":"none","Email":"somebody.else@example.com"}`);
    await intake.sweep(true);
    expect(await keep(intake, profile)).toBe(true);
    expect(await keep(intake, { applicantInfo: { emailAddress: 'somebody.else@example.com' } })).toBe(true);
    const receipts = await eraseAt(intake, byId(intake.id));
    expect(receipts).toMatchObject([{ counts: { applications: 1, quarantined: 1, prefills: 1 } }]);
    expect(await loadErased(other)).toEqual([{ erased: false }]);
    expect(await database.query(`SELECT raw->>'Email' AS email FROM intake.quarantine`)).toEqual([
      { email: 'somebody.else@example.com' },
    ]);
    expect(await database.query(`SELECT outcome FROM intake.prefills ORDER BY created_at`)).toEqual([
      { outcome: 'erased' },
      { outcome: 'prefilled' },
    ]);
  });

  test('takes nobody along where a word stands in the place of the address', async () => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = intake.board.add([{ email: 'none', attachments: [] }]);
    show(intake, `{"ID":"none","Email":"somebody.else@example.com"}`);
    await intake.sweep();
    await keep(intake, { applicantInfo: { emailAddress: 'none' } });
    expect(await eraseAt(intake, byId(id))).toMatchObject([
      { counts: { applications: 1, quarantined: 0, prefills: 0 } },
    ]);
  });
});

describe('a person who was erased with --and-future', () => {
  testFirst<[string, Sought]>([
    ['address', byAddress],
    ['account', byAccount],
  ])('by %s has no new application stored; without it the new one is', async ([, sought]) => {
    await using intake = await openWithZelda();
    await eraseAt(intake, sought);
    const [before = 0n] = intake.board.add([{ ...zelda, attachments: [] }]);
    await intake.sweep();
    expect(await loadErased(before)).toEqual([{ erased: false }]);
    await eraseAt(intake, sought, true);
    const [after = 0n, other = 0n] = intake.board.add([{ ...zelda, attachments: [{ kind: 'resume' }] }, {}]);
    await intake.sweep();
    await intake.runDownloads();
    expect(await loadErased(after)).toEqual([{ erased: true }]);
    expect(await loadErased(other)).toEqual([{ erased: false }]);
    expect(await findZelda(intake)).toEqual([]);
    expect(await keptOut()).toBe(1);
    // A repeated request without it does not lift it.
    await eraseAt(intake, sought);
    const [later = 0n] = intake.board.add([{ ...zelda, attachments: [] }]);
    await intake.sweep();
    expect(await loadErased(later)).toEqual([{ erased: true }]);
  });

  test.for([
    ['the address is gone', { email: '', jobSeekerId: '' }, 0],
    ['another address, and the account', { email: 'other@example.com' }, 0],
    ['the account alone', { email: '' }, 0],
    ['another person', { email: 'bob@example.com', jobSeekerId: 'bob', firstName: 'Bob', lastName: 'Birch' }, 1],
  ] as const)('stays away as the source changes an application that was never stored: %s', async ([, plan, others]) => {
    await using intake = await openSmallIntake({ database });
    await eraseAt(intake, byAddress, true);
    const [id = 0n] = intake.board.add([{ ...zelda, attachments: [] }]);
    await intake.sweep();
    const facts = others > 0 ? { phone: '0491 570 156', jobSeekingInfo: null } : {};
    intake.board.change(id, { ...facts, ...plan });
    await intake.sweep(true);
    expect([await findZelda(intake), await loadErased(id)]).toEqual([[], [{ erased: true }]]);
    expect(await database.query(`SELECT raw->>'FirstName' AS name FROM intake.quarantine`)).toHaveLength(others);
    // Nor without its id.
    show(intake, `{"ID":"${id}x","JobSeekerID":"${zelda.jobSeekerId}","LastName":"${zelda.lastName}"}`);
    await intake.sweep(true);
    expect(await findZelda(intake)).toEqual([]);
    expect(await intake.store.privacy.loadKeyState()).toBe('matches');
  });

  test('is kept out by an account in any shape, not by an application that only names the address', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byAddress, true);
    await eraseAt(intake, byAccount, true);
    show(intake, `{"ID":98000001,"Email":null,"Manager":{"Email":"${zelda.email}"}}`);
    show(intake, `{"ID":98000002,"email":[{"Home":"${zelda.email}"}]}`);
    show(intake, `{"ID":98000003,"jobSeekerId":[{"Value":"${zelda.jobSeekerId}"}]}`);
    await intake.sweep();
    expect(await loadErased(98_000_001n)).toEqual([{ erased: false }]);
    expect(await loadErased(98_000_002n)).toEqual([{ erased: true }]);
    expect(await loadErased(98_000_003n)).toEqual([{ erased: true }]);
  });

  test('does not come in by a change of another application: that one is erased with its files, as its receipt says', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byAddress, true);
    const resume = { kind: 'resume', content: 'a resume', hasVirus: false } as const;
    const [other = 0n] = intake.board.add([{ email: 'somebody@example.com', attachments: [resume] }]);
    await intake.sweep();
    await intake.runDownloads();
    show(intake, `{"ID":"${other}x","Email":"somebody@example.com"}`);
    await intake.sweep(true);
    await database.query(
      `UPDATE intake.applications SET absent_since = now(), missing_since = now() WHERE email IS NOT NULL`,
    );
    intake.board.change(other, { email: zelda.email, lastName: zelda.lastName });
    await intake.sweep(true);
    intake.board.change(other, { attachments: [{ ...resume, hasVirus: true }] });
    await intake.sweep(true);
    expect(await loadErased(other)).toEqual([{ erased: true }]);
    expect(await database.query(`SELECT 1 FROM intake.applications WHERE missing_since IS NOT NULL`)).toEqual([]);
    expect([await keptOut(), await intake.files(), await findZelda(intake)]).toEqual([1, [], []]);
    // Nobody asked to erase the former address.
    expect(await database.query(`SELECT 1 FROM intake.quarantine`)).toHaveLength(1);
    const { advertiserId } = intake.board;
    const receipts = await finishErasures(intake, await intake.store.erasures.loadOpenErasures(advertiserId), signal);
    expect(receipts).toMatchObject([
      { soughtBy: 'application', requestedBy: 'gate', counts: { applications: 1, files: 1 } },
    ]);
    expect(await intake.keys()).toEqual([]);
    expect(
      await database.query(
        `SELECT count(*)::int AS n FROM intake.events WHERE application_id = $1 AND type = 'application.erased'`,
        [other],
      ),
    ).toEqual([{ n: 1 }]);
    expect(await database.query(`SELECT action, application_id FROM intake.audit_log WHERE by = 'gate'`)).toEqual([
      { action: 'erase', application_id: String(other) },
    ]);
  });

  test('does not erase an application by an answer that is older than what is stored', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byAddress, true);
    const [other = 0n] = intake.board.add([{ email: 'somebody@example.com', attachments: [] }]);
    await intake.sweep();
    await database.query(`UPDATE intake.applications SET observed_seq = observed_seq + 1000`);
    intake.board.change(other, { email: zelda.email });
    await intake.sweep(true);
    expect(await loadErased(other)).toEqual([{ erased: false }]);
    expect(await findZelda(intake)).toEqual([]);
  });

  test('does not come in by a replay, and leaves no element, also if the process ends then', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, byAddress, true);
    await addElement(intake, '00', { ID: 99_000_001, Email: zelda.email, LastName: zelda.lastName });
    const quarantine = {
      ...intake.store.quarantine,
      resolveQuarantine: () => Promise.reject(new Error('The process ends.')),
    };
    await expect(replayAt({ ...intake, store: { ...intake.store, quarantine } })).rejects.toThrow('ends');
    expect(await findZelda(intake)).toEqual([]);
    expect(await loadErased(99_000_001n)).toEqual([{ erased: true }]);
  });

  test('is stored again once that was ended as docs/protect-people.md says, by any receipt of the request', async () => {
    const [, end = ''] = /`(UPDATE intake\.erasures [^`]+)`/.exec(readFileSync('docs/protect-people.md', 'utf8')) ?? [];
    for (const which of [0, 1]) {
      await using intake = await openWithZelda();
      const receipts = [...(await eraseAt(intake, byAddress, true)), ...(await eraseAt(intake, byAddress))];
      expect(receipts).toHaveLength(2);
      await database.query(end.replace(/\s+/g, ' ').replace('..', '$1'), [receipts[which]?.jobId]);
      const [after = 0n] = intake.board.add([{ ...zelda, attachments: [] }]);
      await intake.sweep();
      expect(await loadErased(after)).toEqual([{ erased: false }]);
    }
  });

  test('has no prefill stored, also one that begins later; without it that one is', async () => {
    await using intake = await openWithZelda();
    const keepHers = () => keep(intake, { applicantInfo: { emailAddress: zelda.email } });
    await eraseAt(intake, byAddress);
    expect(await keepHers()).toBe(true);
    await eraseAt(intake, byAddress, true);
    expect(await keepHers()).toBe(false);
    expect(await keptOut()).toBe(1);
  });
});

const loadErased = (id: bigint) =>
  database.query(`SELECT erased_at IS NOT NULL AS erased FROM intake.applications WHERE application_id = $1`, [id]);

test('an application that RETENTION erases keeps out nothing else of its person', async () => {
  await using intake = await openWithZelda();
  await database.query(
    `UPDATE intake.applications SET first_seen_at = now() - interval '400 days', submitted_at = now() - interval '400 days'`,
  );
  const before = new Date(Date.now() - 365 * 86_400_000);
  const advertisers = [intake.board.advertiserId];
  await retain(intake, { advertisers, before, released: true, by: 'retention', signal });
  expect(await loadErased(intake.id)).toEqual([{ erased: true }]);
  show(intake, `{"ID":"none","Email":"${zelda.email}","JobReference":"JOB-NEW"}`);
  await intake.sweep(true);
  expect(await database.query(`SELECT 1 FROM intake.quarantine`)).toHaveLength(1);
});

test('an application with a tombstone whose rows are here all the same is neither parsed again nor exported', async () => {
  await using intake = await openWithZelda();
  const { id } = intake;
  await intake.runDownloads();
  const { advertiserId } = intake.board;
  const run = { advertisers: [advertiserId], parserVersion: null, signal };
  expect(await reparse({ ...intake, parseScreens }, run)).toMatchObject({ read: 1 });
  expect(await intake.store.privacy.loadExport(advertiserId, id)).not.toBeNull();
  // A tombstone that an erasure in a copy of this database has left.
  const [other = 0n] = intake.board.add([{ attachments: [] }]);
  await intake.sweep();
  await eraseAt(intake, { by: 'application', applicationId: other });
  await database.query(`UPDATE intake.applications SET application_id = $1 WHERE application_id = $2`, [-other, other]);
  await database.query(
    `SET session_replication_role = replica;
     UPDATE intake.applications SET application_id = ${other} WHERE application_id = ${id};
     UPDATE intake.attachments SET application_id = ${other} WHERE application_id = ${id};
     UPDATE intake.screens SET application_id = ${other} WHERE application_id = ${id};
     RESET session_replication_role`,
  );
  expect(await reparse({ ...intake, parseScreens }, run)).toMatchObject({ read: 0 });
  expect(await intake.store.privacy.loadExport(advertiserId, other)).toBeNull();
});

test('intake erase --and-future is refused for a single application, and says what is the default', async () => {
  await using intake = await openWithZelda();
  const { id } = intake;
  const env = toEnvironment(database, intake.board, `${intake.folder}/blobs`);
  expect(await callIntake(['erase', '--application', String(id), '--and-future', '--yes'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--and-future needs --email or --job-seeker'),
  });
  const help = (await callIntake(['erase', '--help'], env)).stdout.replace(/\s+/g, ' ');
  expect(help).toContain('Without it, new ones are stored');
  expect(await callIntake(['erase', '--email', zelda.email, '--and-future', '--yes'], env)).toMatchObject({ code: 0 });
  expect(await database.query(`SELECT count(*)::int AS n FROM intake.erasures WHERE future`)).toEqual([{ n: 1 }]);
  const tombstones = await database.query<{ text: string }>(`SELECT e::text AS text FROM intake.erasures e`);
  expect(tombstones.map(({ text }) => text).join()).not.toMatch(/zelda|seeker/i);
  const status = JSON.parse((await callIntake(['status', '--json'], env)).stdout) as {
    advertisers: { keptOut: number }[];
  };
  expect(status.advertisers[0]).toMatchObject({ keptOut: 0 });
});
