// `intake healthcheck`: requests /livez of the worker on this machine, for a container's HEALTHCHECK. Needs no database and no login.
import { command } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

const timeoutMs = 4_000;

export const healthcheck = command({
  name: 'healthcheck',
  summary: 'check that the worker on this machine is alive; exits with 8 when it is not',
  examples: [['intake healthcheck', "for a container's HEALTHCHECK: requests /livez on ADMIN_PORT"]],
  async run({ env, signal, terminal }) {
    const { admin } = await loadCommandConfig(env, { needs: ['admin'] });
    const url = `http://${toReachable(admin.ADMIN_HOST)}:${admin.ADMIN_PORT}/livez`;
    const answer = await ask(url, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
    signal.throwIfAborted();
    terminal.result({ url, ...answer }, () => `${url}: ${answer.detail}`);
    return answer.ok ? exitCodes.done : exitCodes.unhealthy;
  },
});

async function ask(url: string, signal: AbortSignal): Promise<{ readonly ok: boolean; readonly detail: string }> {
  try {
    const { ok, status } = await fetch(url, { signal, redirect: 'error' });
    return { ok, detail: ok ? 'alive' : `answers ${status}` };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return {
      ok: false,
      detail: isLate
        ? `no answer within ${timeoutMs / 1_000} s`
        : 'no answer: no worker runs here, or it has another ADMIN_HOST or ADMIN_PORT',
    };
  }
}

/** A worker that listens on every address is reached on loopback. */
function toReachable(host: string): string {
  if (host === '0.0.0.0' || host === '*') return '127.0.0.1';
  if (host === '::' || host === '[::]') return '[::1]';
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}
