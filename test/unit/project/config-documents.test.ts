// The two documents of the settings are what the table says, to the byte.

import { globSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { settings } from '../../../src/config/settings.ts';
import { renderEnvExample, renderPage } from '../../support/documents/config-documents.ts';

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

  it('every variable of the table is used beside it', () => {
    const sources = globSync('src/**/*.ts', { exclude: ['src/config/settings.ts', 'src/dev/**'] });
    const text = sources.map((file) => readFileSync(file, 'utf8')).join('');
    expect([...settings.keys()].filter((name) => !text.includes(name))).toEqual([]);
  });

  it('.env.example sets every variable once its # are taken away, to a text that is accepted', () => {
    const env = parseEnv(readFileSync('.env.example', 'utf8').replace(/^# (?=[A-Z0-9_]+=)/gm, ''));
    expect(new Set(Object.keys(env)), hint).toEqual(new Set(settings.keys()));
    for (const [name, text] of Object.entries(env))
      expect(settings.get(name)?.read.safeParse(text).success, name).toBe(true);
  });
});
