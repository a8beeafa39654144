// The version stands in package.json. Where a file has to repeat it, the two agree, and the changelog has a section for it.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const read = (file: string) => readFileSync(file, 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };
const changelog = read('CHANGELOG.md');

describe('the version', () => {
  it('is the same in the lock, the image and the manifests', () => {
    const lock = JSON.parse(read('package-lock.json')) as { version: string; packages: { '': { version: string } } };
    const images = Array.from(read('deploy/kubernetes.yaml').matchAll(/image: \S+:(\S+)/g), ([, tag]) => tag);
    const [, argument] = /^ARG VERSION=(\S+)$/m.exec(read('Dockerfile')) ?? [];
    expect([lock.version, lock.packages[''].version, ...images, argument]).toEqual(Array(5).fill(version));
  });

  it('has a section in the changelog, the first one after what is not released', () => {
    const [unreleased, newest] = Array.from(changelog.matchAll(/^## \[([^\]]+)\]/gm), ([, name]) => name);
    expect([unreleased, newest]).toEqual(['Unreleased', version]);
  });
});

describe('the changelog', () => {
  it('says of every entry what it does to the schema', () => {
    const entries = changelog.split('\n- ').slice(1);
    expect(entries.length).toBeGreaterThan(5);
    const silent = entries.filter((entry) => !/Schema: (?:none|expand|contract)\.\s*(?:$|\n)/.test(entry));
    expect(silent).toEqual([]);
  });

  it('uses the headings of keepachangelog.com', () => {
    const headings = Array.from(changelog.matchAll(/^### (\w+)$/gm), ([, heading]) => heading);
    const known = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
    expect(headings.filter((heading) => !known.includes(heading ?? ''))).toEqual([]);
  });
});
