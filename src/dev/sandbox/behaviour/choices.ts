// Where the API's description is silent, the sandbox must still do something. Each such behaviour is a choice with a name, options, a
// default, and the number of the silence that it answers (numbered in docs/source-api.md). Choices are lasting properties of an account
// and may be changed while it is in use. Single failures are faults.

import { z } from 'zod';

/** A whole number, at least 1. */
const count = z.int().positive();

/** A choice with any schema. */
function choice<Form extends z.ZodType>(silence: number, meaning: string, form: Form, initial: z.output<Form>) {
  return { silence, meaning, form, initial };
}

/** A choice between words; the first is the default. */
function oneOf<const Option extends string>(silence: number, meaning: string, options: readonly [Option, ...Option[]]) {
  return choice(silence, meaning, z.enum(options), options[0] as Option);
}

/**
 * The choices of the candidate side (version 2): authorization, tokens, profile and resume. They belong to the account with the
 * advertiser_id of the authorization request.
 */
export const candidateChoices = {
  consent: oneOf(47, 'How the candidate gives consent: on a page, or automatically.', ['ask', 'allow', 'deny']),
  authorizeRefused: oneOf(44, 'How a wrong scope, response_type or advertiser_id is rejected.', ['redirect', 'page']),
  denial: oneOf(44, 'How the denial of consent is returned.', ['error', 'stateOnly', 'errorAndCode']),
  tokenError: oneOf(44, 'How the token endpoint rejects a code.', ['json400', 'html500', 'ok200', 'emptyBody']),
  codeLifetimeSeconds: choice(43, 'How long a code may be exchanged.', count, 300),
  tokenLifetimeSeconds: choice(43, 'How long a token is accepted.', count, 3600),
  expiresIn: oneOf(43, 'The value of expires_in.', ['seconds', 'text', 'zero', 'negative', 'absent']),
  tokenRefused: oneOf(43, 'The status for an expired or unknown token.', ['401', '403', '400']),
  codeShape: oneOf(48, 'The characters of a code, and whether a plus sign in it is escaped in the redirect URL.', [
    'plain',
    'special',
    'barePlus',
  ]),
  tokenType: oneOf(49, 'The letter case of token_type.', ['bearer', 'Bearer', 'BEARER']),
  profile: oneOf(45, 'The members of the profile, or what is sent instead of it.', [
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
  emptyFields: oneOf(50, 'Whether fields of the prefill request may be empty.', ['refuse400', 'accept']),
} as const;

const filters = ['afterid', 'afterdate', 'beforeid', 'beforedate'] as const;

/** Every choice. For `oneOf`, the first option is the default. */
export const choices = {
  // The list
  order: oneOf(1, 'In which order applications are listed.', [
    'ascending',
    'descending',
    'byDate',
    'byDateDescending',
    'random',
    'perRequest',
  ]),
  pageCap: choice(2, 'How many applications one answer contains at most; null is no limit.', count.nullable(), null),
  pageCapBytes: choice(
    2,
    'How many bytes of applications one answer contains at most (at least one application); null is no limit.',
    count.nullable(),
    null,
  ),
  pageCapVaries: choice(2, 'Whether each request draws its own limit between 1 and pageCap.', z.boolean(), false),
  afterIdBound: oneOf(3, 'Whether the application named by afterid is itself listed.', ['exclusive', 'inclusive']),
  beforeIdBound: oneOf(3, 'Whether the application named by beforeid is itself listed.', ['exclusive', 'inclusive']),
  afterDateBound: oneOf(4, 'Whether an application submitted exactly at afterdate is listed.', [
    'exclusive',
    'inclusive',
  ]),
  beforeDateBound: oneOf(4, 'Whether an application submitted exactly at beforedate is listed.', [
    'exclusive',
    'inclusive',
  ]),
  combination: oneOf(5, 'What several filters mean together.', [
    'and',
    'or',
    'afterWins',
    'beforeWins',
    'refuse400',
    'refuse403',
  ]),
  ignoredFilters: choice(6, 'Filters that are accepted and have no effect.', z.array(z.enum(filters)), []),
  filtersAfterCap: choice(
    6,
    'Filters that are applied after the page limit, not before.',
    z.array(z.enum(filters)),
    [],
  ),
  defaultWindowDays: choice(7, 'How many days are listed without a lower bound; null is all.', count.nullable(), null),
  withdrawnPerMille: choice(
    8,
    'How many of a thousand applications count towards the page limit but are not shown.',
    z.int().min(0).max(1000),
    0,
  ),
  echo: oneOf(9, 'How the filters are echoed.', ['right', 'absent', 'null', 'number', 'wrong', 'otherZone', 'text']),
  empty: oneOf(10, 'What an answer without applications looks like.', [
    'list',
    'null',
    'missingKey',
    'emptyObject',
    'nullResult',
    'bareList',
    'emptyBody',
    'noContent',
    'notFound',
  ]),
  topLevel: oneOf(11, 'What the list is wrapped in.', ['wrapped', 'unwrapped', 'bareList']),
  single: oneOf(11, 'How a list with one element is written.', ['array', 'object']),
  keyCase: oneOf(11, 'The letter case of JSON members.', ['pascal', 'camel', 'lower', 'upper']),
  extraMembers: choice(11, 'Whether undocumented members are added.', z.boolean(), false),
  dateZone: oneOf(12, 'The time zone of afterdate and beforedate.', ['standard', 'melbourne', 'utc']),
  invalidFilter: oneOf(13, 'What a filter with an invalid value does.', ['refuse400', 'ignore', 'empty']),
  dateOffset: oneOf(14, 'The offset that is written with an instant.', [
    'standard',
    'melbourne',
    'utc',
    'absent',
    'colon',
    'odd',
    'impossible',
  ]),
  dateShape: oneOf(14, 'The text of a date in JSON.', [
    'milliseconds',
    'escapedSlashes',
    'iso',
    'isoWithoutZone',
    'isoSevenDigits',
  ]),
  dateShift: oneOf(14, 'Whether the milliseconds are the instant, or already include the offset.', [
    'instant',
    'shifted',
  ]),
  agentId: oneOf(15, 'The value of AgentID.', ['null', 'number', 'text', 'changing', 'absent']),
  idSpacing: oneOf(16, 'How far apart the ids of new applications are.', ['sparse', 'consecutive', 'wide']),
  idShape: oneOf(16, 'How ids are written in JSON.', ['number', 'text']),
  idsAgainstDates: oneOf(16, 'Whether a larger id always means a later date.', ['rising', 'crossed']),
  xmlNamespace: oneOf(17, 'The namespace of elements in XML.', ['none', 'default', 'prefixed']),
  xmlNull: oneOf(17, 'How null is written in XML.', ['iNil', 'xsiNil', 'absent', 'emptyElement']),
  xmlOrder: oneOf(17, 'The order of elements in XML.', ['drawn', 'reversed', 'sorted']),
  xmlDates: oneOf(17, 'The text of a date in XML.', ['iso', 'milliseconds']),
  acceptUnclear: oneOf(18, 'The format when the Accept header names neither or both.', ['json', 'xml', 'refuse406']),
  formatHonoured: oneOf(18, 'Whether the answer is in the requested format.', ['asked', 'opposite']),
  includeUnknown: oneOf(19, 'What another value of include does.', ['ignore', 'refuse400', 'include']),
  includeHonoured: oneOf(19, 'When PrimaryJobSeekingInfo is sent.', ['asked', 'always', 'never']),
  unsupplied: oneOf(20, 'How a fact that the jobseeker did not supply is written in PrimaryJobSeekingInfo.', [
    'absent',
    'null',
    'empty',
  ]),
  charset: oneOf(21, 'The encoding of lists and screens, and the charset in Content-Type.', [
    'utf8',
    'unlabelled',
    'mislabelled',
    'utf8WithMark',
    'utf16',
  ]),
  // Attachments
  hash: oneOf(22, 'What Hash is.', [
    'md5',
    'sha1',
    'sha256',
    'upperCase',
    'null',
    'absent',
    'empty',
    'constant',
    'volatile',
    'colliding',
    'long',
  ]),
  size: oneOf(23, 'What Size is.', ['true', 'null', 'absent', 'offByThree', 'zero', 'negative', 'text']),
  screenSize: oneOf(23, 'Which format of a screen its Size and Hash describe.', ['json', 'xml']),
  virusFlag: oneOf(24, 'How HasVirus is written.', ['boolean', 'text', 'number', 'absent']),
  virusUnknown: oneOf(24, 'How HasVirus is written when it is unknown.', ['null', 'absent', 'emptyText']),
  virusBody: oneOf(24, 'What the download of an infected file returns.', ['empty', 'bytes', 'notFound']),
  href: oneOf(25, 'The form of Href.', [
    'relative',
    'typed',
    'absolute',
    'foreign',
    'protocolRelative',
    'backslashes',
    'tab',
    'parent',
    'upperCase',
    'versioned',
    'rooted',
    'missing',
    'null',
    'otherId',
    'signed',
  ]),
  typeCase: oneOf(26, 'The letter case of an attachment Type.', ['drawn', 'lower', 'upper', 'pascal']),
  pathCase: oneOf(26, 'Whether paths are case-sensitive.', ['exact', 'any']),
  disposition: oneOf(27, 'The form of Content-Disposition.', [
    'plain',
    'quoted',
    'spaces',
    'extended',
    'both',
    'rawUtf8',
    'traversal',
    'nul',
    'long',
    'missing',
  ]),
  fileType: oneOf(27, 'The Content-Type of a file.', ['uploaded', 'octetStream', 'missing']),
  framing: oneOf(28, 'How the end of a body is marked.', ['chunked', 'contentLength', 'closeDelimited']),
  fileMissing: oneOf(29, 'What a path returns for a missing attachment or application.', [
    'notFound',
    'noContent',
    'emptyBody',
    'gone',
    'refuse400',
    'fail500',
  ]),
  // Screens
  screenShape: oneOf(30, 'How the screen is written in JSON.', ['object', 'array', 'null', 'absent', 'unwrapped']),
  screenExtras: choice(
    30,
    'Whether JSON screens contain leftovers of XML: ?xml and @xmlns members.',
    z.boolean(),
    false,
  ),
  questionShape: oneOf(31, 'How the questions are written in JSON.', ['array', 'objectWhenOne', 'null', 'absent']),
  answerShape: oneOf(31, 'How the answers are written in JSON.', [
    'drawn',
    'arrays',
    'objectsWhenOne',
    'strings',
    'null',
    'absent',
  ]),
  answerText: oneOf(32, 'How the text of an answer is written in JSON.', ['text', 'number', 'list', 'cdata', 'absent']),
  successful: oneOf(33, 'How the outcome of a screen is spelled.', ['drawn', 'lower', 'empty', 'absent', 'pass']),
  selected: oneOf(33, 'How a selected answer is marked.', ['drawn', 'lower', 'falseToo', 'absent']),
  screenMissing: oneOf(34, 'What the screen path returns for an application without a screen.', [
    'notFound',
    'noContent',
    'emptyBody',
    'emptyScreen',
  ]),
  // The whole service
  errorBody: oneOf(35, 'The body of an error.', ['json', 'xml', 'html', 'text', 'empty']),
  unknownPath: oneOf(35, 'What an unknown path or method returns.', ['notFound', 'html200', 'refuse405']),
  credentialRefused: oneOf(36, 'The status for a wrong or missing credential.', ['401', '403', '404', 'redirect']),
  ratePerSecond: choice(37, 'How many requests are allowed per second; null is no limit.', count.nullable(), null),
  retryAfter: oneOf(37, 'The form of Retry-After when the limit is exceeded.', [
    'seconds',
    'date',
    'absent',
    'zero',
    'negative',
    'day',
  ]),
  removedFile: oneOf(39, 'What the file paths of a removed application return.', ['notFound', 'gone', 'kept']),
  sunset: oneOf(40, 'Whether the service announces its end.', ['none', 'header', 'gone']),
  ...candidateChoices,
} as const;

/** The value of each choice. */
export type Choices = { readonly [Name in keyof typeof choices]: z.output<(typeof choices)[Name]['form']> };

/** The schema of a request that changes some choices. */
export const choicesForm = z
  .strictObject(Object.fromEntries(Object.entries(choices).map(([name, { form }]) => [name, form.optional()])))
  .transform((some) => some as Partial<Choices>);

/** The choices of an account that sets none. */
export const defaultChoices = Object.fromEntries(
  Object.entries(choices).map(([name, { initial }]) => [name, initial]),
) as Choices;

/** Silences that the sandbox cannot simulate, and why. */
export const unplayable: Readonly<Record<number, string>> = {
  38: 'Not a behaviour: files and lists of any size can be added.',
  41: 'Happens before the first request: the credential is given when the sandbox starts.',
  42: 'Nothing to answer: the service sends no requests itself.',
};

/** The options of a choice, for display. */
export function describeOptions(name: keyof Choices): string[] {
  const { form } = choices[name];
  if (form instanceof z.ZodEnum) return form.options.map(String);
  if (form instanceof z.ZodBoolean) return ['false', 'true'];
  if (form === count) return ['a number from 1'];
  if (form instanceof z.ZodNullable) return ['null', 'a number from 1'];
  if (form instanceof z.ZodArray) return ['none', 'any of', ...filters];
  return ['a number from 0 to 1000'];
}
