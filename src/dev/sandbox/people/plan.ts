// The schema of an application that a caller adds or changes; omitted values are invented.
// The same schema serves calls in the process and JSON over the control API.

import { z } from 'zod';

/** An id as a number, decimal text or bigint. Beyond 2^53, only text and bigint are exact. */
export const idForm = z.union([z.bigint(), z.int(), z.string().regex(/^-?\d{1,30}$/)]).transform((id) => BigInt(id));

const answerForm = z.object({ id: z.string(), text: z.string(), selected: z.boolean() });
const questionForm = z.object({ id: z.string(), type: z.string(), text: z.string(), answers: z.array(answerForm) });
const screenForm = z.object({
  id: z.string(),
  name: z.string(),
  successful: z.boolean(),
  questions: z.array(questionForm),
});

const attachmentForm = z.strictObject({
  /** `resume`, `coverLetter`, `selectionCriteria`, `screen`, or any other text. */
  kind: z.string(),
  hasVirus: z.boolean().nullable().optional(),
  uploadedAt: z.number().optional(),
  /** `content`: the bytes as text. `sizeBytes`: a filler file of any size. Neither: an invented document. */
  content: z.string().optional(),
  sizeBytes: z.int().nonnegative().optional(),
  fileName: z.string().optional(),
  contentType: z.string().optional(),
  /** Selects the invented document: another number gives another document. */
  version: z.int().optional(),
  /** Members of the list's element as raw text, by name: `raw` as JSON, `rawXml` as the XML content of the member. */
  raw: z.record(z.string(), z.string()).optional(),
  rawXml: z.record(z.string(), z.string()).optional(),
});

/** What a jobseeker may state about their work when applying; null for a fact that does not apply. */
const jobSeekingInfoForm = z.object({
  jobTitle: z.string().nullable(),
  companyName: z.string().nullable(),
  timeInRoleMonths: z.int().nullable(),
  isNewToWorkforce: z.boolean(),
});

export const planForm = z.strictObject({
  id: idForm.optional(),
  submittedAt: z.number().optional(),
  email: z.string().optional(),
  firstName: z.string().optional(),
  lastName: z.string().optional(),
  phone: z.string().optional(),
  jobSeekerId: z.string().optional(),
  jobReference: z.string().nullable().optional(),
  jobSeekingInfo: jobSeekingInfoForm.nullable().optional(),
  /** All attachments, instead of the invented ones. */
  attachments: z.array(attachmentForm).optional(),
  /** Attachments to add; each replaces one of the same kind. */
  attach: z.array(attachmentForm).optional(),
  /** Kinds to remove. */
  detach: z.array(z.string()).optional(),
  screens: z.array(screenForm).optional(),
  /** The whole body of the screen as raw text. */
  rawScreen: z.strictObject({ json: z.string(), xml: z.string() }).optional(),
  raw: z.record(z.string(), z.string()).optional(),
  rawXml: z.record(z.string(), z.string()).optional(),
  /** The whole element of the list as raw text. */
  element: z.strictObject({ json: z.string(), xml: z.string() }).optional(),
});

export type ApplicationPlan = z.input<typeof planForm>;
export type ParsedPlan = z.output<typeof planForm>;
export type AttachmentPlan = z.output<typeof attachmentForm>;
export type JobSeekingFacts = z.output<typeof jobSeekingInfoForm>;
export type FilledScreen = z.output<typeof screenForm>;
export type FilledQuestion = z.output<typeof questionForm>;
export type FilledAnswer = z.output<typeof answerForm>;
