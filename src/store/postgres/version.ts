// The version of Intake. It stands in package.json and nowhere else.
import { readFileSync } from 'node:fs';

export const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};
