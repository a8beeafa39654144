// Everything that semver covers (docs/compatibility.md), as one list: each name with its type. test/support/documents/surface.json holds
// the list of the last release. Within a major version, nothing of it may vanish or change its type.
import { readFileSync } from 'node:fs';
import { createProgram } from '../../../src/cli/command.ts';
import { commands } from '../../../src/cli/commands.ts';
import { exitCodes } from '../../../src/cli/failure.ts';
import { type Setting, sections } from '../../../src/config/settings.ts';
import { identityName, toBlobKey } from '../../../src/domain/blob.ts';
import { toMessage } from '../../../src/domain/webhook.ts';
import { startMs } from '../../simulation/judge.ts';
import { kindNamed } from '../../simulation/kinds.ts';
import { proveSweep, toProofLines } from '../../simulation/simulated-proof.ts';
import { createMemory } from '../../simulation/simulated-reader.ts';
import { createFilled } from '../database/filled-metrics.ts';
import type { TestDatabase } from '../database/test-database.ts';
import { toMembers } from './json-members.ts';

/** A name is a kind, a thing and, for a part of a thing, that part: `view jobs .job_reference`. */
export type Surface = Readonly<Record<string, string>>;

export async function loadSurface(database: Pick<TestDatabase, 'query'>): Promise<Surface> {
  const entries = [
    ...Object.entries(exitCodes).map(([name, code]) => [`exit ${name}`, `${code}`]),
    ...listCommands(),
    ...listJson(),
    ...(await listRelations(database)),
    ...(await listEvents(database)),
    ...listMessage(),
    ...(await listMetrics()),
    ...Object.values(sections).flatMap((section) => Object.entries<Setting>(section).map(toSettingEntry)),
    ...listProof(),
    ['key blob', toBlobKey(7n, 'ab'.repeat(32))],
    ['key owner', identityName],
  ];
  return Object.fromEntries(entries.sort(([one = ''], [other = '']) => (one < other ? -1 : 1)));
}

type Entry = readonly [name: string, type: string];

function listCommands(): Entry[] {
  const program = createProgram(commands, '0.0.0', undefined as never, () => {});
  return program.commands.flatMap((command): Entry[] => {
    const names = command.registeredArguments.map((one) => (one.required ? one.name() : `[${one.name()}]`));
    const options = command.options.filter(({ long }) => long !== '--json');
    return [
      [`command ${command.name()}`, names.join(' ')],
      ...options.map(
        ({ long, flags }): Entry => [`command ${command.name()} ${long}`, /<|\[/.test(flags) ? 'value' : 'flag'],
      ),
    ];
  });
}

/** As docs/cli-json.md shows it; test/journey/commands/cli-json.test.ts compares that page with what the commands write. */
function listJson(): Entry[] {
  const page = readFileSync('docs/cli-json.md', 'utf8');
  return Array.from(page.matchAll(/^```json (.+)\n([\s\S]+?)^```/gm)).flatMap(([, line = '', text = '']) =>
    [...toMembers(JSON.parse(text))]
      // Which states there are depends on the data.
      .filter(([path]) => !path.includes('.attachments.'))
      .map(([path, type]): Entry => [`json ${line.replaceAll(' ', '_')} ${path}`, type]),
  );
}

/** The tables that docs/compatibility.md names, with the columns that others may read. */
const tables: Readonly<Record<string, string>> = {
  advertisers: 'name advertiser_id state reason agent_id',
  cursors: 'advertiser_id after_id after_date as_of',
  applications:
    'advertiser_id application_id submitted_at source_offset email first_name last_name phone job_seeker_id job_reference raw raw_text notes person_key first_seen_at changed_at ready_at absent_since missing_since erased_at',
  primary_job_seeking_info:
    'advertiser_id application_id job_title company_name time_in_role_months is_new_to_workforce',
  attachments:
    'advertiser_id application_id kind state reason source_hash size_bytes has_virus uploaded_at href sha256 content_type detected_type file_name stored_at gone_at',
  blobs: 'advertiser_id sha256 size_bytes key',
  screens: 'advertiser_id application_id screen_no screen_id name outcome',
  screen_questions: 'advertiser_id application_id screen_no question_no question_id type text',
  screen_answers: 'advertiser_id application_id screen_no question_no answer_no answer_id text selected',
  quarantine: 'advertiser_id application_id reason raw first_seen_at last_seen_at seen resolved_at',
  events: 'advertiser_id event_id application_id type at',
  prefills: 'prefill_id advertiser_id profile resume_sha256 created_at',
};
export const namedTables = Object.keys(tables);

async function listRelations({ query }: Pick<TestDatabase, 'query'>): Promise<Entry[]> {
  const rows = await query<{ schema: string; name: string; column: string; type: string }>(
    `SELECT table_schema AS schema, table_name AS name, column_name AS column,
       CASE data_type WHEN 'ARRAY' THEN udt_name ELSE data_type END AS type
     FROM information_schema.columns WHERE table_schema IN ('intake', 'intake_analytics')`,
  );
  return rows.flatMap(({ schema, name, column, type }): Entry[] => {
    if (schema === 'intake_analytics') return [[`view ${name} .${column}`, type]];
    return tables[name]?.split(' ').includes(column) ? [[`table ${name} .${column}`, type]] : [];
  });
}

async function listEvents({ query }: Pick<TestDatabase, 'query'>): Promise<Entry[]> {
  const [row] = await query<{ definition: string }>(
    `SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname = 'events_type'`,
  );
  return Array.from(row?.definition.matchAll(/'(\w+\.\w+)'/g) ?? [], ([, type]) => [`event ${type}`, 'event']);
}

/** What a webhook posts, without the row of a view. */
function listMessage(): Entry[] {
  const at = new Date(startMs);
  const ids = { eventId: 1n, advertiserId: 7n, applicationId: 1n };
  const message = toMessage(
    { ...ids, type: 'application.ready', at, state: 'ready', readAt: at, application: null },
    false,
  );
  return [...toMembers(JSON.parse(message.body))].map(([path, type]) => [`event message ${path}`, type]);
}

async function listMetrics(): Promise<Entry[]> {
  const { metrics, status } = createFilled();
  const text = await metrics.render(status);
  return Array.from(text.matchAll(/^# TYPE (intake_\w+) (\w+)$/gm), ([, name = '', type = '']) => {
    const [, labels = ''] = new RegExp(`^${name}(?:_bucket)?\\{(.*)\\}`, 'm').exec(text) ?? [];
    const names = Array.from(labels.matchAll(/(\w+)="/g), ([, label]) => label).filter((label) => label !== 'le');
    return [`metric ${name}`, [type, ...names].join(' ')];
  });
}

function toSettingEntry([name, setting]: [string, Setting]): Entry {
  const given = setting.default ?? setting.developmentDefault ?? 'none';
  return [`setting ${name}`, `${setting.secret ? 'secret, ' : ''}default ${given}`];
}

/** Of the lines that `intake prove --export` writes, for a list that is read twice. */
function listProof(): Entry[] {
  const server = kindNamed('friendly').create(7, { startMs, still: true, rows: 80, page: 15 });
  const memory = createMemory(startMs);
  proveSweep(server, memory, 1n, { seed: 1 });
  memory.now += 86_400_000;
  const lines = toProofLines(proveSweep(server, memory, 2n, { seed: 2, known: true }), memory).map((line) =>
    JSON.parse(line),
  );
  const members = lines.flatMap((line) =>
    [...toMembers(line)].map(([path, type]): Entry => [`proof ${line.type} ${path}`, type]),
  );
  return [['proof format', String(lines[0].format)], ...members];
}

/**
 * What a release of the same major version may not do with the surface of an earlier one, and what it adds without saying so: in the
 * changelog, above the section of that earlier version, stands the thing that is new, or its new part, in backticks.
 */
export function compareSurfaces(earlier: Surface, now: Surface, news: string): string[] {
  const isAnyType = (type: string | undefined) => type === 'null';
  const lost = Object.entries(earlier).flatMap(([name, type]) => {
    const found = now[name];
    if (found === undefined) return [`vanished: ${name}`];
    return found === type || isAnyType(found) || isAnyType(type)
      ? []
      : [`changed: ${name} was ${type} and is ${found}`];
  });
  const things = new Set(Object.keys(earlier).map(toThing));
  const unsaid = Object.keys(now).filter((name) => {
    if (name in earlier) return false;
    const thing = toThing(name);
    const said = things.has(thing) ? (name.split(/[ .]/).at(-1) ?? '') : thing.split(' ')[1];
    return !news.includes(`\`${said?.replaceAll('_', ' ')}\``) && !news.includes(`\`${said}\``);
  });
  return [...lost, ...unsaid.map((name) => `new, and not in CHANGELOG.md: ${name}`)];
}

function toThing(name: string): string {
  return name.split(' ', 2).join(' ');
}
