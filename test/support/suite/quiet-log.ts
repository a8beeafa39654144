// A log that nobody reads.
import type { Log } from '../../../src/log.ts';

export const quietLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
