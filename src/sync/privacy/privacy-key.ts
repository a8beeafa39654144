// Checks PRIVACY_KEY: pages and erasures need the key with which this database was filled. With another key no tombstone matches, and
// erased people would be stored again.
import { SettingTrouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';

export async function requireKey(store: { readonly privacy: Pick<Store['privacy'], 'loadKeyState'> }): Promise<void> {
  if ((await store.privacy.loadKeyState()) !== 'differs') return;
  throw new SettingTrouble(
    'PRIVACY_KEY is not the key that this database was filled with: with another one erased people could return. ' +
      'Set the earlier key, or restore it from your secrets.',
  );
}
