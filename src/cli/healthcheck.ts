// `intake healthcheck`: asks the worker beside it whether it lives, for a container's HEALTHCHECK. Needs no database and no login.
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { loadCommandConfig } from './load-config.ts';

const retryForMs = 4_000;

export const healthcheck = command({
  name: 'healthcheck',
  summary: 'ask the worker on this machine whether it lives; ends with 8 when it does not',
  examples: [['intake healthcheck', "for a container's HEALTHCHECK: asks /livez on ADMIN_PORT"]],
  async run({ env, signal, terminal }) {
    const { admin } = await loadCommandConfig(env, { needs: ['admin'] });
    const url = `http://${toReachable(admin.host)}:${admin.port}/livez`;
    const answer = await ask(url, AbortSignal.any([signal, AbortSignal.timeout(retryForMs)]));
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
        ? `no answer within ${retryForMs / 1_000} s`
        : 'no answer: no worker runs here, or it has another ADMIN_HOST or ADMIN_PORT',
    };
  }
}

/** What listens on every address is asked on this machine's own. */
function toReachable(host: string): string {
  if (host === '0.0.0.0' || host === '*') return '127.0.0.1';
  if (host === '::' || host === '[::]') return '[::1]';
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}
