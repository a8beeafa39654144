// The nine endpoints as an OpenAPI document.
// It contains only what the description of the API says; page.ts shows what the sandbox assumes beyond that.

import { questionTypes } from '../people/questionnaires.ts';
import { candidatePaths } from './openapi-candidate.ts';

/** The document for a sandbox at this address. */
export function toOpenApi(origin: string): object {
  return {
    openapi: '3.1.0',
    info: { title: 'Job application retrieval (sandbox)', version: '1' },
    servers: [{ url: origin }],
    security: [{ sws: [] }],
    paths: {
      '/v1/advertiser/applications': {
        get: {
          operationId: 'listApplications',
          summary: 'Applications made to the advertiser.',
          parameters: [
            toQuery('afterid', 'Applications after this id.', { type: 'string', pattern: '^\\d+$' }),
            toQuery('afterdate', 'Applications after this time.', localTime),
            toQuery('beforeid', 'Applications before this id.', { type: 'string', pattern: '^\\d+$' }),
            toQuery('beforedate', 'Applications before this time.', localTime),
            toQuery('include', 'Adds PrimaryJobSeekingInfo where it exists.', { enum: ['primaryjobseekinginfo'] }),
          ],
          responses: toResponses('JobApplicationsResult'),
        },
      },
      ...toDownload('resume', 'The resume.'),
      ...toDownload('coverletter', 'The cover letter.'),
      ...toDownload('selectioncriteria', 'The selection criteria.'),
      '/v1/advertiser/applications/screen/{jobApplicationId}': {
        get: {
          operationId: 'getScreen',
          summary: 'The screening questionnaire with the answers given.',
          parameters: [jobApplicationId],
          responses: toResponses('ScreenResult'),
        },
      },
      ...candidatePaths,
    },
    components: {
      securitySchemes: {
        sws: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'The text `SWS`, a space, and the credential.',
        },
        client: { type: 'http', scheme: 'basic', description: 'Client id and client secret.' },
        candidate: { type: 'http', scheme: 'bearer', description: 'The access token.' },
      },
      schemas,
    },
  };
}

const localTime = { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}$' };
const moment = { type: 'string', pattern: '^/Date\\(-?\\d+[+-]\\d{4}\\)/$' };
const text = { type: 'string' };
const jobApplicationId = {
  name: 'jobApplicationId',
  in: 'path',
  required: true,
  schema: { type: 'integer', format: 'int64' },
};

const schemas = {
  JobApplicationsResult: toObject({
    JobApplications: toObject({
      AdvertiserID: { type: 'integer', format: 'int64' },
      AfterDate: { oneOf: [moment, { type: 'null' }] },
      AfterID: { type: ['string', 'null'] },
      BeforeDate: { oneOf: [moment, { type: 'null' }] },
      BeforeID: { type: ['string', 'null'] },
      AgentID: {},
      JobApplicationsList: { type: 'array', items: toReference('JobApplication') },
    }),
  }),
  JobApplication: toObject(
    {
      ID: { type: 'integer', format: 'int64' },
      DateSubmitted: moment,
      Email: text,
      FirstName: text,
      LastName: text,
      Phone: text,
      JobSeekerID: text,
      JobReference: text,
      Attachments: { type: 'array', items: toReference('Attachment') },
      PrimaryJobSeekingInfo: toReference('PrimaryJobSeekingInfo'),
    },
    ['JobReference', 'PrimaryJobSeekingInfo'],
  ),
  Attachment: toObject({
    DateUploaded: moment,
    HasVirus: { type: ['boolean', 'null'] },
    Hash: text,
    Href: text,
    Size: { type: 'integer' },
    Type: { enum: ['resume', 'coverLetter', 'selectionCriteria', 'screen'] },
  }),
  PrimaryJobSeekingInfo: toObject(
    { JobTitle: text, CompanyName: text, TimeInRole: { type: 'integer' }, IsNewToWorkForce: { type: 'boolean' } },
    ['JobTitle', 'CompanyName', 'TimeInRole'],
  ),
  ScreenResult: toObject({
    screen: { oneOf: [toReference('Screen'), { type: 'array', items: toReference('Screen') }] },
  }),
  Screen: toObject({
    '@id': text,
    '@name': text,
    '@successful': { enum: ['True', 'False'] },
    question: { type: 'array', items: toReference('Question') },
  }),
  Question: toObject({
    '@id': text,
    '@type': { enum: questionTypes },
    '@text': text,
    answer: { oneOf: [toReference('Answer'), { type: 'array', items: toReference('Answer') }] },
  }),
  Answer: toObject({ '@id': text, '@selected': { const: 'True' }, '#text': text }, ['@selected']),
};

function toReference(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function toObject(properties: Record<string, object>, optional: readonly string[] = []): object {
  return { type: 'object', properties, required: Object.keys(properties).filter((name) => !optional.includes(name)) };
}

function toQuery(name: string, description: string, schema: object): object {
  return { name, in: 'query', description, schema };
}

function toResponses(schema: string): object {
  const content = {
    'application/json': { schema: toReference(schema) },
    'application/xml': { schema: { type: 'string' } },
  };
  return { 200: { description: 'In the format that the Accept header requests.', content } };
}

function toDownload(folder: string, summary: string): object {
  const binary = { schema: { type: 'string', format: 'binary' } };
  return {
    [`/v1/advertiser/applications/${folder}/{jobApplicationId}`]: {
      get: {
        operationId: `download_${folder}`,
        summary,
        parameters: [jobApplicationId],
        responses: {
          200: {
            description: 'The file, with its type at upload.',
            headers: { 'Content-Disposition': { schema: text }, 'Cache-Control': { schema: { const: 'private' } } },
            content: { '*/*': binary },
          },
        },
      },
    },
  };
}
