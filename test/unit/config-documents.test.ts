// The two documents of the settings are what the table says, to the byte.

import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { settings } from '../../src/config/settings.ts';
import { renderEnvExample, renderPage } from '../support/config-documents.ts';

const hint = 'run npm run config:docs';

describe('the documents of the settings', () => {
  it('.env.example is the one rendered from the table', () => {
    expect(readFileSync('.env.example', 'utf8'), hint).toBe(renderEnvExample());
  });

  it('docs/configuration.md holds the table, and every variable of it', () => {
    const page = readFileSync('docs/configuration.md', 'utf8');
    expect(page, hint).toBe(renderPage(page));
    for (const name of settings.keys()) expect(page).toContain(`| \`${name}\``);
  });

  it('every variable of the table is used by src/config.ts', () => {
    const source = readFileSync('src/config.ts', 'utf8');
    const unused = [...settings.keys()].filter((name) => !source.includes(name));
    expect(unused, 'src/config.ts gives it to the parts that need it').toEqual([]);
  });

  it('.env.example sets every variable once its # are taken away, to a text that is accepted', () => {
    const env = parseEnv(readFileSync('.env.example', 'utf8').replace(/^# (?=[A-Z0-9_]+=)/gm, ''));
    expect(new Set(Object.keys(env)), hint).toEqual(new Set(settings.keys()));
    for (const [name, text] of Object.entries(env))
      expect(settings.get(name)?.read.safeParse(text).success, name).toBe(true);
  });
});
