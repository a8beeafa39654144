// `intake status`: prints the status as text or JSON; once, as a check for cron jobs, or repeatedly. `intake healthcheck`: requests /livez of
// the worker on this machine, for a container's HEALTHCHECK; it needs no database and no login.
import { setTimeout as sleep } from 'node:timers/promises';
import { isHealthy, type Status, toReport, toUnknownStatus } from '../../domain/status/status.ts';
import { command, flag } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

/** Moves the cursor to the upper left and clears the screen: redraws in place and keeps the scrollback. */
const clear = '\u001b[H\u001b[2J';

export const status = command({
  name: 'status',
  summary: 'show advertisers, coverage, cursor, queue and problems',
  examples: [
    ['intake status', 'what is stored, how far the list was read, and what needs attention'],
    ['intake status --check', 'for cron jobs: exits with 8 when reading stopped, or the proof is missing or too old'],
  ],
  options: { check: flag('exit with 8 when a problem is urgent'), watch: flag('redraw it every two seconds') },
  async run({ env, signal, terminal }, { check, watch }) {
    const config = await loadCommandConfig(env, ['database', 'privacy', 'sync', 'extract']);
    const { loadAnyStatus, openAnyStore } = await import('../../app/database.ts');
    const { isTemporary } = await import('../../sync/retry.ts');
    const { renderStatus } = await import('../render-status.ts');
    await using store = await openAnyStore(config, 'status');
    let awaySince: Date | null = null;
    for (;;) {
      let value: Status;
      try {
        value = await loadAnyStatus(store, config);
        awaySince = null;
      } catch (error) {
        if (!watch || !isTemporary(error)) throw error;
        awaySince ??= new Date();
        value = toUnknownStatus(new Date(), awaySince, error.message);
      }
      terminal.result(toReport(value), () => `${watch && terminal.isScreen ? clear : ''}${renderStatus(value)}`);
      if (!watch) return check && !isHealthy(value) ? exitCodes.unhealthy : exitCodes.done;
      await sleep(2_000, undefined, { signal }).catch(() => {});
      if (signal.aborted) return exitCodes.done;
    }
  },
});

export const healthcheck = command({
  name: 'healthcheck',
  summary: 'check that the worker on this machine is alive; exits with 8 when it is not',
  examples: [['intake healthcheck', "for a container's HEALTHCHECK: requests /livez on ADMIN_PORT"]],
  async run({ env, signal, terminal }) {
    const { ADMIN_HOST, ADMIN_PORT } = (await loadCommandConfig(env, ['admin'])).admin;
    // A worker that listens on every address is reached on loopback.
    const host = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }[ADMIN_HOST] ?? ADMIN_HOST;
    const url = `http://${host}:${ADMIN_PORT}/livez`;
    const until = AbortSignal.any([signal, AbortSignal.timeout(4_000)]);
    const none = 'no answer within 4 s: no worker runs here, or it has another ADMIN_HOST or ADMIN_PORT';
    const { ok, detail } = await fetch(url, { signal: until, redirect: 'error' }).then(
      ({ ok, status }) => ({ ok, detail: ok ? 'alive' : `answers ${status}` }),
      () => ({ ok: false, detail: none }),
    );
    signal.throwIfAborted();
    terminal.result({ url, ok, detail }, () => `${url}: ${detail}`);
    return ok ? exitCodes.done : exitCodes.unhealthy;
  },
});
