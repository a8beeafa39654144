// The choices of the candidate side (version 2): authorization, tokens, profile and resume. They hold for the account whose
// advertiser_id the candidate was asked for.

import { choice, count, oneOf } from './choice.ts';

/** Every choice of the candidate side. */
export const candidateChoices = {
  consent: oneOf(47, 'How the candidate is asked: by a page to click on, or not at all.', ['ask', 'allow', 'deny']),
  authorizeRefused: oneOf(44, 'How a wrong scope, response_type or advertiser_id is refused.', ['redirect', 'page']),
  denial: oneOf(44, 'How the denial of a candidate comes back.', ['error', 'stateOnly', 'errorAndCode']),
  tokenError: oneOf(44, 'How the token endpoint says that a code is not accepted.', [
    'json400',
    'html500',
    'ok200',
    'emptyBody',
  ]),
  codeLifetimeSeconds: choice(43, 'How long a code may be exchanged.', count, 300),
  tokenLifetimeSeconds: choice(43, 'How long a token is accepted.', count, 3600),
  expiresIn: oneOf(43, 'What stands in expires_in.', ['seconds', 'text', 'zero', 'negative', 'absent']),
  tokenRefused: oneOf(43, 'The status for an expired or unknown token.', ['401', '403', '400']),
  codeShape: oneOf(48, 'What a code is made of, and whether a plus sign in it is escaped in the address.', [
    'plain',
    'special',
    'barePlus',
  ]),
  tokenType: oneOf(49, 'The letter case of token_type.', ['bearer', 'Bearer', 'BEARER']),
  profile: oneOf(45, 'The members of the profile, or what comes in its place.', [
    'known',
    'flat',
    'renamed',
    'sparse',
    'empty',
    'list',
    'null',
    'noContent',
    'notFound',
  ]),
  resumeLink: oneOf(46, 'How the profile points to the resume.', [
    'absolute',
    'relative',
    'foreign',
    'notUuid',
    'absent',
  ]),
  emptyFields: oneOf(50, 'Whether fields of the prefill request may be there and empty.', ['refuse400', 'accept']),
} as const;
