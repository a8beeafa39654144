// What happens at the source meanwhile: people apply, some late, facts and files change, flags come and go.
// Every change of facts carries a rising number, so that an older answer over a newer one can be seen.

import type { Advertiser } from '../../src/sandbox/account.ts';
import type { Random } from '../support/random.ts';

export interface Workload {
  /** Ids that showed after higher ones did: a cursor may rightly be beyond them. */
  readonly late: ReadonlySet<bigint>;
  /** Something happens. */
  step(): void;
  /** The files of these applications are other files from now on. */
  changeFiles(ids: readonly bigint[]): void;
  /** Whatever was held back shows. */
  finish(): void;
}

/** What precedes the number of a change in JobReference. */
export const changeMark = 'chaos-v';

export function createWorkload(accounts: readonly Advertiser[], random: Random): Workload {
  const late = new Set<bigint>();
  const shown = new Map(accounts.map((account) => [account, [...account.truth()].map(({ id }) => id)]));
  let number = 0;

  const idsOf = (account: Advertiser) => shown.get(account) as bigint[];
  const changeFile = (account: Advertiser, id: bigint) => {
    number += 1;
    account.change(id, { attach: [{ kind: 'resume', version: number, uploadedAt: Date.now() }] });
  };

  return {
    late,
    step() {
      const account = random.pick(accounts);
      const ids = idsOf(account);
      const roll = random.next();
      const id = ids.length > 0 ? random.pick(ids) : null;
      if (roll < 0.45 || id === null) ids.push(...account.add(random.between(1, 4)));
      else if (roll < 0.7) account.change(id, { jobReference: `${changeMark}${++number}` });
      else if (roll < 0.84) changeFile(account, id);
      else if (roll < 0.9) {
        account.change(id, {
          attach: [{ kind: 'resume', version: ++number, hasVirus: random.pick([true, false, null]) }],
        });
      } else if (roll < 0.96) for (const held of account.holdBack(random.between(1, 3))) late.add(held);
      else ids.push(...account.release());
    },
    changeFiles(wanted) {
      for (const account of accounts) {
        const known = new Set(idsOf(account));
        for (const id of wanted) if (known.has(id)) changeFile(account, id);
      }
    },
    finish() {
      for (const account of accounts) idsOf(account).push(...account.release());
    },
  };
}
