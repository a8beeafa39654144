// Activity at the source during a plan: people apply, some applications appear late, facts and files change, flags are set and lifted.
// Every change of facts carries an increasing number, so that an older answer that overwrites a newer one can be detected.

import { createHash } from 'node:crypto';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { Random } from '../support/suite/random.ts';

export interface Workload {
  /** Ids that are listed after higher ids were. The cursor may be beyond them. */
  readonly late: ReadonlySet<bigint>;
  /** The sha256 of every file that a change added or replaced. */
  readonly digests: ReadonlySet<string>;
  /** Makes one random change. */
  step(): void;
  /** Replaces the resumes of these applications, or of random ones. */
  changeFiles(ids?: readonly bigint[]): void;
  /** Flags some files that a change added; `lift` removes the flags. */
  flagSome(): { readonly hashes: readonly string[]; readonly lift: () => void };
  /** Removes some applications from the list; `show` lists them again, unchanged. */
  hideSome(): { readonly ids: readonly bigint[]; readonly show: () => void };
  /** Changes these erased applications and their neighbours in the list. A sweep that stores a neighbour has also read the erased one. */
  changeAround(ids: ReadonlySet<bigint>): void;
  /** Lists every application that was held back. */
  finish(): void;
}

/** The prefix of a change's number in JobReference. */
export const changeMark = 'chaos-v';

export function createWorkload(accounts: readonly BoardAdvertiser[], random: Random): Workload {
  const late = new Set<bigint>();
  const shown = new Map(accounts.map((account) => [account, [...account.truth()].map(({ id }) => id)]));
  const digests = new Set<string>();
  /** Files that a change added. A flag on one marks its bytes as infected for every application that has them. */
  const own = new Map<bigint, { readonly content: string; readonly uploadedAt: number }>();
  /** The last flag of each application. */
  const last = new Map<bigint, boolean | null>();
  /** Applications flagged by a fault that lifts the flag itself. */
  const flagged = new Set<bigint>();
  /** New applications that may not change yet, because the invariants have not recorded their first files. */
  const young: { readonly account: BoardAdvertiser; readonly ids: readonly bigint[] }[] = [];
  let number = 0;

  const idsOf = (account: BoardAdvertiser) => shown.get(account) as bigint[];
  const show = (account: BoardAdvertiser, shownIds: readonly bigint[]) => young.push({ account, ids: shownIds });
  const changeFile = (account: BoardAdvertiser, id: bigint) => {
    number += 1;
    // A worker may have fetched the previous file before the invariants recorded it.
    const { attachments = [] } = [...account.truth()].find((one) => one.id === id) ?? {};
    for (const { sha256 } of attachments) if (sha256 !== null) digests.add(sha256);
    const content = `document ${number} ${'.'.repeat(random.between(10, 3_000))}`;
    digests.add(createHash('sha256').update(content).digest('hex'));
    own.set(id, { content, uploadedAt: Date.now() });
    account.change(id, { attach: [{ kind: 'resume', hasVirus: false, ...own.get(id) }] });
  };
  /** Uploads the same bytes as another application's file. */
  const shareFile = (account: BoardAdvertiser, id: bigint) => {
    const others = idsOf(account).filter((one) => one !== id && own.has(one));
    if (others.length === 0) return changeFile(account, id);
    own.set(id, { content: own.get(random.pick(others))?.content ?? '', uploadedAt: Date.now() });
    account.change(id, { attach: [{ kind: 'resume', hasVirus: false, ...own.get(id) }] });
  };
  const setFlag = (account: BoardAdvertiser, id: bigint, hasVirus: boolean | null) => {
    last.set(id, hasVirus);
    account.change(id, { attach: [{ kind: 'resume', hasVirus, ...own.get(id) }] });
  };
  const changeFlag = (account: BoardAdvertiser, id: bigint) => {
    // Only false lifts a flag: a source that says nothing any more would differ from the rows for ever.
    const hasVirus = random.pick(last.get(id) ? [true, false] : [true, false, null]);
    if (own.has(id)) setFlag(account, id, hasVirus);
  };

  return {
    late,
    digests,
    step() {
      if (young.length > 12) for (const one of young.splice(0, 1)) idsOf(one.account).push(...one.ids);
      const account = random.pick(accounts);
      const ids = idsOf(account);
      const roll = random.next();
      const id = ids.length > 0 ? random.pick(ids) : null;
      if (roll < 0.45 || id === null) show(account, account.add(random.between(1, 4)));
      else if (roll < 0.7) account.change(id, { jobReference: `${changeMark}${++number}` });
      else if (roll < 0.8) changeFile(account, id);
      else if (roll < 0.84) shareFile(account, id);
      else if (roll < 0.9) changeFlag(account, random.pick(ids.filter((one) => own.has(one)).concat(id)));
      else if (roll < 0.96) for (const held of account.holdBack(random.between(1, 3))) late.add(held);
      else show(account, account.release());
    },
    changeFiles(wanted) {
      for (const account of accounts) {
        const chosen = wanted ?? Array.from({ length: 8 }, () => random.pick(idsOf(account)));
        for (const id of chosen) if (idsOf(account).includes(id)) changeFile(account, id);
      }
    },
    flagSome() {
      const account = random.pick(accounts);
      const free = idsOf(account).filter((id) => own.has(id) && !flagged.has(id));
      const chosen = free.slice(0, 3);
      const hashes = chosen.map((id) =>
        createHash('sha256')
          .update(own.get(id)?.content ?? '')
          .digest('hex'),
      );
      for (const id of chosen) {
        flagged.add(id);
        setFlag(account, id, true);
      }
      return {
        hashes,
        lift() {
          for (const id of chosen) {
            flagged.delete(id);
            if (idsOf(account).includes(id)) setFlag(account, id, false);
          }
        },
      };
    },
    hideSome() {
      const account = random.pick(accounts);
      const ids = idsOf(account).splice(0, random.between(1, 3));
      for (const id of ids) {
        account.remove(id);
        // If it was not stored yet, it appears late.
        late.add(id);
      }
      return {
        ids,
        show() {
          for (const id of ids) account.restore(id);
          idsOf(account).push(...ids);
        },
      };
    },
    changeAround(ids) {
      for (const account of accounts) {
        const listed = [...account.truth()].map(({ id }) => id);
        const around = listed.filter((_, at) => [-1, 0, 1].some((by) => ids.has(listed[at + by] as bigint)));
        for (const id of around) account.change(id, { jobReference: `${changeMark}${++number}` });
        for (const id of around) if (ids.has(id)) changeFile(account, id);
      }
    },
    finish() {
      for (const account of accounts) account.release();
    },
  };
}
