import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.ts';

// The pages in a real Chromium. One file at a time: a browser wants a core of its own.
const { test: { exclude: _, include: __, ...shared } = {}, ...rest } = base;
export default mergeConfig(
  defineConfig({ ...rest, test: shared }),
  defineConfig({ test: { include: ['test/browser/**/*.test.ts'], maxWorkers: 1 } }),
);
