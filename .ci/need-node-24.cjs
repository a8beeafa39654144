// Says in words what a missing package or an older Node would say in a stack: `npm ci` brings both, unless install scripts are blocked.
const { existsSync } = require('node:fs');
const { join } = require('node:path');

function stop(text) {
  process.stderr.write(text);
  process.exit(2);
}

// One package for all: the folder itself may be there, with a cache in it.
if (!existsSync(join(__dirname, '../node_modules/commander'))) {
  stop("Intake's packages are not installed in this checkout.\n  Next: run `npm ci`, then the same command again.\n");
}
if (Number(process.versions.node.split('.')[0]) < 24) {
  stop(
    `Intake runs on Node 24; this is ${process.versions.node}.\n` +
      '  `npm ci` brings it as the package "node", whose install script was probably blocked.\n' +
      '  Next: allow that script (it is named in allowScripts of package.json) and run `npm ci` again, or use Node 24 or newer.\n',
  );
}
