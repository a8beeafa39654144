// Replaces members of the list by any JSON or XML text from a plan.
// With it, a test sends values that no careful server would send.

import type { Member } from './wire.ts';

/** Applies a plan to members; new members are added. Without `rawXml`, a scalar in `raw` serves both notations. */
export function overlay(
  members: Member[],
  raw: Record<string, string> = {},
  rawXml: Record<string, string> = {},
): Member[] {
  const names = new Set([...members.map(([name]) => name), ...Object.keys(raw), ...Object.keys(rawXml)]);
  const drawn = new Map(members);
  return [...names].map((name): Member => {
    const json = Object.hasOwn(raw, name) ? raw[name] : undefined;
    const xml = Object.hasOwn(rawXml, name) ? rawXml[name] : undefined;
    if (json === undefined && xml === undefined) return [name, drawn.get(name) ?? null];
    return [name, { json: json ?? 'null', xml: xml ?? toXmlText(json ?? '') }];
  });
}

function toXmlText(json: string): string {
  const text = json.startsWith('"') ? json.slice(1, -1) : json === 'null' ? '' : json;
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
