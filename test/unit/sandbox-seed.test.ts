import { hash } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openSandbox, type SandboxOptions } from '../../src/dev/sandbox/http/server.ts';
import { zoneOffsetMinutes } from '../../src/dev/sandbox/wire/dates.ts';
import { get } from '../support/servers/plain-client.ts';

const now = () => Date.UTC(2026, 5, 30, 3);

/** One digest over every list, file and screen that an account serves. */
async function digestAll(options: SandboxOptions): Promise<string> {
  await using sandbox = await openSandbox({ now, ...options });
  const ask = async (path: string, accept: string) =>
    (
      await get(`${sandbox.url}/v1/advertiser/applications${path}`, {
        accept,
        authorization: `SWS ${sandbox.credential}`,
      })
    ).body;
  const bodies = [];
  for (const accept of ['application/json', 'application/xml']) {
    bodies.push(await ask('?include=primaryjobseekinginfo', accept));
    for (const row of sandbox.truth()) {
      for (const { kind } of row.attachments) bodies.push(await ask(`/${kind.toLowerCase()}/${row.id}`, accept));
    }
  }
  return hash('sha256', Buffer.concat(bodies));
}

describe('a seed', () => {
  test('gives the same bytes every time and on every machine', async () => {
    // Written down once: another value means that every seed has become another world.
    expect(await digestAll({ seed: 5, applications: 60 })).toBe(
      '52f1b5b6aaf86524e8c56751b3d9c8245d1f9dd4fb4fec4c0b9837959eb401e3',
    );
  });

  test('gives the same bytes all day where no moment is named, and recent ones the next day', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const list = async (at: string) => {
      vi.setSystemTime(at);
      await using sandbox = await openSandbox({ seed: 7, applications: 400 });
      const url = `${sandbox.url}/v1/advertiser/applications`;
      const { text } = await get(url, { authorization: `SWS ${sandbox.credential}` });
      return { text, newest: [...sandbox.truth()].at(-1)?.submittedAt ?? 0 };
    };
    const first = await list('2026-11-15T00:00:01Z');
    expect((await list('2026-11-15T23:59:59Z')).text).toBe(first.text);
    const nextDay = await list('2026-11-16T00:00:01Z');
    expect(nextDay.text).not.toBe(first.text);
    expect(Date.UTC(2026, 10, 16) - nextDay.newest).toBeLessThan(86_400_000);
  });

  test('gives two advertisers different people', async () => {
    await using sandbox = await openSandbox({ now, applications: 20, advertisers: [{ applications: 20 }] });
    const [mine, theirs] = sandbox.advertisers.map((one) => Array.from(one.truth(), (row) => row.jobSeekerId));
    expect(new Set(mine).intersection(new Set(theirs)).size).toBe(0);
  });
});

test('the clock of the source agrees with the time zone database on Melbourne, hour by hour over four years', () => {
  const format = new Intl.DateTimeFormat('en-AU', { timeZone: 'Australia/Melbourne', timeZoneName: 'longOffset' });
  const offsetOf = (at: number) => {
    const name = format.formatToParts(at).find((part) => part.type === 'timeZoneName')?.value ?? '';
    return name === 'GMT+11:00' ? 660 : 600;
  };
  // Each night of change to the hour, and every fourth day.
  const changes = [2024, 2025, 2026, 2027].flatMap((year) => [Date.UTC(year, 3, 1), Date.UTC(year, 9, 1)]);
  const moments = changes.flatMap((from) => Array.from({ length: 8 * 24 }, (_, hour) => from + hour * 3_600_000));
  for (const at of moments) expect(zoneOffsetMinutes(at, 'melbourne')).toBe(offsetOf(at));
  const edge = Date.UTC(2026, 3, 4, 16);
  expect([zoneOffsetMinutes(edge - 1, 'melbourne'), zoneOffsetMinutes(edge, 'melbourne')]).toEqual([660, 600]);
});
