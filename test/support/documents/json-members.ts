/** The members of a value, by path, each with its type; null is of any type, and an empty list of any elements. */
export function toMembers(value: unknown, path = ''): Map<string, string> {
  if (value === null) return new Map([[path, 'null']]);
  if (Array.isArray(value)) return value.length === 0 ? new Map() : toMembers(value[0], `${path}[]`);
  if (typeof value !== 'object') return new Map([[path, typeof value]]);
  return new Map(Object.entries(value).flatMap(([name, member]) => [...toMembers(member, `${path}.${name}`)]));
}
