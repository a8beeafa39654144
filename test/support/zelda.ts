// Someone whose every fact is a word that stands nowhere else, so that whatever is left of her after an erasure can be found.
import { createHash } from 'node:crypto';
import { findTraces } from './database/dump.ts';
import type { SmallIntake } from './small-intake.ts';

export const zelda = {
  email: 'zelda.quarlesworth@example.com',
  firstName: 'Zeldabeth',
  lastName: 'Quarlesworth',
  phone: '0491 570 737',
  jobSeekerId: 'seeker-zq-7788',
  jobReference: 'JOB-1',
  jobSeekingInfo: {
    jobTitle: 'Zirconium Buyer',
    companyName: 'Quarlesworth Mining',
    timeInRoleMonths: 5,
    isNewToWorkforce: false,
  },
} as const;

export const zeldaResume = { kind: 'resume', content: 'zeldas resume', fileName: 'zelda-cv.pdf' } as const;

export const zeldaWords = [
  ...['quarlesworth', 'zeldabeth', '0491 570 737', 'seeker-zq-7788', 'zirconium', 'zelda-cv', 'zeldas resume'],
  createHash('sha256').update(zeldaResume.content).digest('hex'),
];

/** Where she is found, in the tables and among the files. */
export function findZelda({ database, folder }: Pick<SmallIntake, 'database' | 'folder'>): Promise<string[]> {
  return findTraces({ database, folders: [folder], words: zeldaWords });
}
