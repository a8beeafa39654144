// The four endpoints of the candidate side for the OpenAPI document.

const text = { type: 'string' };
const json = (schema: object) => ({ 'application/json': { schema } });
const required = (name: string, schema: object, description: string) => ({
  name,
  in: 'query',
  required: true,
  schema,
  description,
});

/** The paths of the candidate side. */
export const candidatePaths = {
  '/api/iam/oauth2/authorize': {
    get: {
      operationId: 'authorize',
      summary: "Asks the candidate for consent, in the candidate's browser.",
      security: [],
      parameters: [
        required('client_id', text, 'The client.'),
        required('redirect_uri', { type: 'string', format: 'uri' }, 'The address that the browser is redirected to.'),
        required('state', text, 'Returned unchanged.'),
        required('scope', { const: 'r_profile_apply' }, 'The requested scope.'),
        required('response_type', { const: 'code' }, 'The response type.'),
        required('advertiser_id', { type: 'string', pattern: '^\\d+$' }, 'The advertiser of the application form.'),
      ],
      responses: { 302: { description: 'A redirect to redirect_uri with code and state.' } },
    },
  },
  '/api/iam/oauth2/token': {
    post: {
      operationId: 'exchangeCode',
      summary: 'Exchanges a code for a token, once.',
      security: [{ client: [] }],
      requestBody: {
        required: true,
        content: {
          'application/x-www-form-urlencoded': {
            schema: {
              type: 'object',
              properties: { code: text, redirect_uri: text, grant_type: { const: 'authorization_code' } },
              required: ['code', 'redirect_uri', 'grant_type'],
            },
          },
        },
      },
      responses: {
        200: {
          description: 'The token.',
          content: json({
            type: 'object',
            properties: { access_token: text, token_type: { const: 'bearer' }, expires_in: { type: 'integer' } },
          }),
        },
      },
    },
  },
  '/v2/applications/prefilled': {
    post: {
      operationId: 'loadProfile',
      summary: "The candidate's profile, for a form.",
      security: [{ candidate: [] }],
      requestBody: {
        required: true,
        content: json({
          type: 'object',
          properties: {
            applicationFormUrl: { type: 'string', format: 'uri' },
            advertiserId: { type: 'string', pattern: '^\\d+$' },
            positionTitle: text,
            positionUri: { type: 'string', format: 'uri' },
            countryCode: { type: 'string', pattern: '^[A-Za-z]{2}$' },
            postalCode: text,
          },
        }),
      },
      responses: {
        200: { description: 'The profile; its members are not documented.', content: json({ type: 'object' }) },
      },
    },
  },
  '/v2/resumes/{resumeId}': {
    get: {
      operationId: 'downloadCandidateResume',
      summary: "The candidate's resume.",
      security: [{ candidate: [] }],
      parameters: [{ name: 'resumeId', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } }],
      responses: {
        200: {
          description: 'The file.',
          headers: { 'Content-Disposition': { schema: text }, 'Content-Length': { schema: { type: 'integer' } } },
          content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
        },
      },
    },
  },
};
