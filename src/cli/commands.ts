// Every command of the CLI, in the order of the help.

import type { Definition } from './command.ts';

export const commands: readonly Definition<never>[] = [];
