// Prints every regular expression of src with its file, and every call that builds one at run time, as JSON. A process of its own: Node
// warns that stripTypeScriptTypes is experimental, and a warning fails the test file in which it appears.
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { parseAst } from 'vite';

const literals: object[] = [];
const built: string[] = [];
for (const file of globSync('src/**/*.ts')) {
  const open: unknown[] = [parseAst(stripTypeScriptTypes(readFileSync(file, 'utf8')))];
  while (open.length > 0) {
    const node = open.pop();
    if (typeof node !== 'object' || node === null) continue;
    if ('regex' in node) literals.push({ file, ...(node.regex as object) });
    if ('callee' in node && (node.callee as { name?: unknown }).name === 'RegExp') built.push(file);
    open.push(...Object.values(node));
  }
}
process.stdout.write(JSON.stringify({ literals, built }));
