// A value that must not be shown: it prints as `[secret]` wherever it is logged, inspected or serialised.
// It remembers its file, so that a rotated secret can be read again.

import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';

/** Holds a secret's text; only `reveal` and `current` return it. */
export class Secret {
  readonly #text: string;
  #last: string;
  /** The file it was read from, or null: reading that file again gives the rotated value. */
  readonly file: string | null;

  constructor(text: string, file: string | null = null) {
    this.#text = text;
    this.#last = text;
    this.file = file;
  }

  reveal(): string {
    return this.#text;
  }

  /**
   * The secret as its file holds it now, so that rotation needs no restart. While the file cannot be read, or holds nothing usable, for
   * example because it is being written, the text that was used last: the one read first may have been rotated away.
   */
  current(isUsable: (text: string) => boolean = Boolean): string {
    if (this.file === null) return this.#text;
    try {
      const text = loadSecret(this.file).reveal();
      if (isUsable(text)) this.#last = text;
    } catch {}
    return this.#last;
  }

  toJSON(): string {
    return '[secret]';
  }

  toString(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}

/** Reads a secret from its file, without the line break that editors and `echo` append. */
export function loadSecret(file: string): Secret {
  return new Secret(readFileSync(file, 'utf8').replace(/\r?\n$/, ''), file);
}

/** Why a file could not be read, as part of a message; never its content. */
export function explainUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return 'does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'is not readable by this user';
  if (code === 'EISDIR') return 'is a folder';
  return `cannot be read (${typeof code === 'string' ? code : 'unknown error'})`;
}
