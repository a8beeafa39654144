// The version of Intake. It stands in package.json and nowhere else.
import manifest from '../../package.json' with { type: 'json' };

export const { version } = manifest;
