// Every choice of the candidate side, each option tested from outside.
import { expect, test } from 'vitest';
import { type Choices, candidateChoices } from '../../src/dev/sandbox/behaviour/choices.ts';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { askProfile, askResume, authorize, exchange, obtainToken, toPrefillBody } from '../support/candidate-client.ts';

type Name = keyof typeof candidateChoices;

interface Stage {
  readonly sandbox: Sandbox;
  /** Moves the sandbox's clock ahead. */
  wait(ms: number): void;
}

/** Sets each option and expects the given result. */
async function each<N extends Name>(
  name: N,
  { sandbox }: Stage,
  expected: Readonly<Record<Choices[N] & string, unknown>>,
  look: () => Promise<unknown>,
): Promise<void> {
  const { form } = candidateChoices[name];
  expect(new Set(Object.keys(expected))).toEqual(new Set((form as { options: string[] }).options));
  for (const [option, seen] of Object.entries(expected)) {
    sandbox.choose({ [name]: option } as Partial<Choices>);
    expect(await look(), `${name} ${option}`).toEqual(seen);
  }
}

const code = async (sandbox: Sandbox) => (await authorize(sandbox)).searchParams.get('code') ?? '';
const keys = (back: URL) => [...back.searchParams.keys()].join(' ');

const plays: { readonly [N in Name]: (stage: Stage) => Promise<void> } = {
  consent: (stage) =>
    each('consent', stage, { ask: '', allow: 'code state', deny: 'error state' }, async () =>
      keys(await authorize(stage.sandbox)),
    ),
  authorizeRefused: (stage) =>
    each('authorizeRefused', stage, { redirect: 'error state', page: '' }, async () =>
      keys(await authorize(stage.sandbox, { scope: 'x' })),
    ),
  async denial(stage) {
    stage.sandbox.choose({ consent: 'deny' });
    await each(
      'denial',
      stage,
      { error: 'error state', stateOnly: 'state', errorAndCode: 'code error state' },
      async () => keys(await authorize(stage.sandbox)),
    );
  },
  tokenError: (stage) =>
    each(
      'tokenError',
      stage,
      { json400: [400, true], html500: [500, false], ok200: [200, true], emptyBody: [200, false] },
      async () => {
        const answer = await exchange(stage.sandbox, { code: 'none' });
        return [answer.status, (await answer.text()).includes('"error":"invalid_grant"')];
      },
    ),
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
  expiresIn: (stage) =>
    each('expiresIn', stage, { seconds: 3600, text: '3600', zero: 0, negative: -1, absent: undefined }, async () => {
      const answer = await exchange(stage.sandbox, { code: await code(stage.sandbox) });
      return ((await answer.json()) as { expires_in: unknown }).expires_in;
    }),
  tokenRefused: (stage) =>
    each(
      'tokenRefused',
      stage,
      { 401: 401, 403: 403, 400: 400 },
      async () => (await askProfile(stage.sandbox, 'unknown')).status,
    ),
  codeShape: (stage) =>
    each('codeShape', stage, { plain: [false, false], special: [true, false], barePlus: [true, true] }, async () => {
      const back = await authorize(stage.sandbox);
      const issued = stage.sandbox.grants().at(-1)?.code ?? '';
      return [issued.includes('+'), back.search.includes('+')];
    }),
  tokenType: (stage) =>
    each('tokenType', stage, { bearer: 'bearer', Bearer: 'Bearer', BEARER: 'BEARER' }, async () => {
      const answer = await exchange(stage.sandbox, { code: await code(stage.sandbox) });
      return ((await answer.json()) as { token_type: unknown }).token_type;
    }),
  profile: (stage) =>
    each(
      'profile',
      stage,
      {
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
      async () => {
        const answer = await askProfile(stage.sandbox, await obtainToken(stage.sandbox));
        const profile = JSON.parse((await answer.text()) || 'null');
        return [answer.status, profile === null ? 'null' : Object.keys(profile).join(' ')];
      },
    ),
  resumeLink: (stage) =>
    each(
      'resumeLink',
      stage,
      {
        absolute: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v2\/resumes\/[0-9a-f-]{36} 200$/),
        relative: expect.stringMatching(/^\/v2\/resumes\/[0-9a-f-]{36} 200$/),
        foreign: expect.stringMatching(/^https:\/\/files\.example\.net\/v2\/resumes\/[0-9a-f-]{36} 200$/),
        notUuid: expect.stringMatching(/^\/v2\/resumes\/cv_\d+ 200$/),
        absent: 'undefined 404',
      },
      async () => {
        const token = await obtainToken(stage.sandbox);
        const profile = (await (await askProfile(stage.sandbox, token)).json()) as { resume?: { link: string } };
        const id = profile.resume?.link.split('/').at(-1) ?? 'none';
        return `${profile.resume?.link} ${(await askResume(stage.sandbox, token, id)).status}`;
      },
    ),
  emptyFields: (stage) =>
    each('emptyFields', stage, { refuse400: 400, accept: 200 }, async () => {
      const body = { ...toPrefillBody(stage.sandbox), postalCode: '' };
      return (await askProfile(stage.sandbox, await obtainToken(stage.sandbox), body)).status;
    }),
};

test.each(Object.keys(candidateChoices) as Name[])('%s is played as chosen', async (name) => {
  let now = Date.UTC(2026, 3, 30);
  await using sandbox = await openSandbox({ applications: 0, choices: { consent: 'allow' }, now: () => now });
  await plays[name]({
    sandbox,
    wait: (ms) => {
      now += ms;
    },
  });
});
