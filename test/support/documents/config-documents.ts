// Renders .env.example and the table in docs/configuration.md from the table of settings, so that neither goes stale.
// `npm run config:docs` writes both; a test compares them with the settings.

import { readFileSync, writeFileSync } from 'node:fs';
import { type Setting, sections, toExample } from '../../../src/config/settings.ts';

const titles: Record<keyof typeof sections, string> = {
  database: 'Database',
  source: 'Source',
  sync: 'Sweeps and downloads',
  blobs: 'Files',
  extract: 'The extract',
  admin: 'Admin port',
  prefill: 'Prefill (AUTH_URL to SESSION_SECRET: all of them, or none)',
  webhooks: 'Webhooks',
  privacy: 'Privacy',
  process: 'Process',
};

export function renderEnvExample(): string {
  const blocks = eachSection().map(([title, settings]) => {
    const lines = settings.map(
      ([name, setting]) => `# ${toPlain(setting.meaning)}${toFileHint(name, setting)}\n${toLine(name, setting)}`,
    );
    return `## ${title}\n\n${lines.join('\n\n')}\n`;
  });
  return `# Settings of Intake, as docs/configuration.md explains them. Written by \`npm run config:docs\`: change src/config/settings.ts.
# A line "# NAME=value" shows a default or an example: remove "# " to set it. Other lines that begin with # are descriptions.

${blocks.join('\n\n')}`;
}

export function renderTable(): string {
  return eachSection()
    .map(([title, settings]) => {
      const rows = settings.map(
        ([name, setting]) =>
          `| \`${name}\`${setting.secret ? ` (secret${toLength(setting)})` : ''} | ${toDefault(setting)} | ${setting.meaning} |`,
      );
      return `### ${title}\n\n| variable | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
    })
    .join('\n');
}

/** The page with a new table between its two marker comments. */
export function renderPage(page: string): string {
  return page.replace(
    /(<!-- settings -->\n).*(<!-- \/settings -->)/s,
    (_, begin, end) => `${begin}\n${renderTable()}\n${end}`,
  );
}

function eachSection(): [title: string, settings: [string, Setting][]][] {
  return Object.entries(sections).map(([key, section]) => [
    titles[key as keyof typeof sections],
    Object.entries<Setting>(section),
  ]);
}

function toDefault({ default: always, developmentDefault, absent }: Setting): string {
  if (always !== undefined) return `\`${always}\``;
  return developmentDefault === undefined ? (absent ?? '') : `\`${developmentDefault}\`, required in production`;
}

function toLine(name: string, setting: Setting): string {
  return `# ${name}=${setting.default ?? setting.developmentDefault ?? toExample(setting)}`;
}

function toFileHint(name: string, setting: Setting): string {
  return setting.secret ? `. Secret${toLength(setting)}: also as ${name}_FILE` : '';
}

function toLength({ secret }: Setting): string {
  return secret === 'guarded' ? ', at least 16 characters in production' : '';
}

function toPlain(markdown: string): string {
  return markdown.replaceAll('`', '');
}

if (import.meta.main) {
  writeFileSync('.env.example', renderEnvExample());
  writeFileSync('docs/configuration.md', renderPage(readFileSync('docs/configuration.md', 'utf8')));
}
