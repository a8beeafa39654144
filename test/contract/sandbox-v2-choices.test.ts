// Every choice of the candidate side, each option tested from outside.
import { expect } from 'vitest';
import type { candidateChoices } from '../../src/dev/sandbox/behaviour/choices.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { type Plays, testPlays } from '../support/choice-plays.ts';
import {
  askProfile,
  askResume,
  authorize,
  exchange,
  obtainToken,
  toPrefillBody,
} from '../support/prefill/candidate-client.ts';

interface Stage extends AsyncDisposable {
  readonly sandbox: Sandbox;
  /** Moves the sandbox's clock ahead. */
  wait(ms: number): void;
}

const code = async (sandbox: Sandbox) => (await authorize(sandbox)).searchParams.get('code') ?? '';
const keys = (back: URL) => [...back.searchParams.keys()].join(' ');

const plays: Plays<Stage, keyof typeof candidateChoices> = {
  consent: {
    shows: { ask: '', allow: 'code state', deny: 'error state' },
    seen: async (stage) => keys(await authorize(stage.sandbox)),
  },
  authorizeRefused: {
    shows: { redirect: 'error state', page: '' },
    seen: async (stage) => keys(await authorize(stage.sandbox, { scope: 'x' })),
  },
  denial: [
    ({ sandbox }) => sandbox.choose({ consent: 'deny' }),
    {
      shows: { error: 'error state', stateOnly: 'state', errorAndCode: 'code error state' },
      seen: async (stage) => keys(await authorize(stage.sandbox)),
    },
  ],
  tokenError: {
    shows: { json400: [400, true], html500: [500, false], ok200: [200, true], emptyBody: [200, false] },
    seen: async (stage) => {
      const answer = await exchange(stage.sandbox, { code: 'none' });
      return [answer.status, (await answer.text()).includes('"error":"invalid_grant"')];
    },
  },
  async codeLifetimeSeconds({ sandbox, wait }) {
    sandbox.choose({ codeLifetimeSeconds: 2 });
    const [early, late] = [await code(sandbox), await code(sandbox)];
    wait(1999);
    expect((await exchange(sandbox, { code: early })).status).toBe(200);
    wait(1);
    expect((await exchange(sandbox, { code: late })).status).toBe(400);
  },
  async tokenLifetimeSeconds({ sandbox, wait }) {
    sandbox.choose({ tokenLifetimeSeconds: 2 });
    const token = await obtainToken(sandbox);
    wait(1999);
    expect((await askProfile(sandbox, token)).status).toBe(200);
    wait(1);
    expect((await askProfile(sandbox, token)).status).toBe(401);
  },
  expiresIn: {
    shows: { seconds: 3600, text: '3600', zero: 0, negative: -1, absent: undefined },
    seen: async (stage) => {
      const answer = await exchange(stage.sandbox, { code: await code(stage.sandbox) });
      return ((await answer.json()) as { expires_in: unknown }).expires_in;
    },
  },
  tokenRefused: {
    shows: { 401: 401, 403: 403, 400: 400 },
    seen: async (stage) => (await askProfile(stage.sandbox, 'unknown')).status,
  },
  codeShape: {
    shows: { plain: [false, false], special: [true, false], barePlus: [true, true] },
    seen: async (stage) => {
      const back = await authorize(stage.sandbox);
      const issued = stage.sandbox.grants().at(-1)?.code ?? '';
      return [issued.includes('+'), back.search.includes('+')];
    },
  },
  tokenType: {
    shows: { bearer: 'bearer', Bearer: 'Bearer', BEARER: 'BEARER' },
    seen: async (stage) => {
      const answer = await exchange(stage.sandbox, { code: await code(stage.sandbox) });
      return ((await answer.json()) as { token_type: unknown }).token_type;
    },
  },
  profile: {
    shows: {
      known: [200, 'id created updated applicantInfo resume'],
      flat: [200, expect.stringMatching(/^firstName .*resumeUrl$/)],
      renamed: [200, 'candidate documents'],
      sparse: [200, 'applicantInfo resume'],
      empty: [200, ''],
      list: [200, ''],
      null: [200, 'null'],
      noContent: [204, 'null'],
      notFound: [404, 'Message'],
    },
    seen: async (stage) => {
      const answer = await askProfile(stage.sandbox, await obtainToken(stage.sandbox));
      const profile = JSON.parse((await answer.text()) || 'null');
      return [answer.status, profile === null ? 'null' : Object.keys(profile).join(' ')];
    },
  },
  resumeLink: {
    shows: {
      absolute: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v2\/resumes\/[0-9a-f-]{36} 200$/),
      relative: expect.stringMatching(/^\/v2\/resumes\/[0-9a-f-]{36} 200$/),
      foreign: expect.stringMatching(/^https:\/\/files\.example\.net\/v2\/resumes\/[0-9a-f-]{36} 200$/),
      notUuid: expect.stringMatching(/^\/v2\/resumes\/cv_\d+ 200$/),
      absent: 'undefined 404',
    },
    seen: async (stage) => {
      const token = await obtainToken(stage.sandbox);
      const profile = (await (await askProfile(stage.sandbox, token)).json()) as { resume?: { link: string } };
      const id = profile.resume?.link.split('/').at(-1) ?? 'none';
      return `${profile.resume?.link} ${(await askResume(stage.sandbox, token, id)).status}`;
    },
  },
  emptyFields: {
    shows: { refuse400: 400, accept: 200 },
    seen: async (stage) => {
      const body = { ...toPrefillBody(stage.sandbox), postalCode: '' };
      return (await askProfile(stage.sandbox, await obtainToken(stage.sandbox), body)).status;
    },
  },
};

testPlays(plays, async () => {
  let now = Date.UTC(2026, 3, 30);
  const sandbox = await openSandbox({ applications: 0, choices: { consent: 'allow' }, now: () => now });
  return {
    sandbox,
    wait: (ms) => {
      now += ms;
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
});
