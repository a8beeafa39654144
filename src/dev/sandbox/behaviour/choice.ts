// What a choice is made of: the silence it answers, its meaning, its form and what holds when nobody has chosen.

import { z } from 'zod';

/** A number of things, at least one. */
export const count = z.int().positive();

/** A choice of any form. */
export function choice<Form extends z.ZodType>(silence: number, meaning: string, form: Form, initial: z.output<Form>) {
  return { silence, meaning, form, initial };
}

/** A choice between words; the first is the default. */
export function oneOf<const Option extends string>(
  silence: number,
  meaning: string,
  options: readonly [Option, ...Option[]],
) {
  return choice(silence, meaning, z.enum(options), options[0] as Option);
}
