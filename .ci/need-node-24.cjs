// Says in words what an older Node would say in a stack: `npm ci` brings Node 24, unless install scripts are blocked.
if (Number(process.versions.node.split('.')[0]) < 24) {
  process.stderr.write(
    `Intake runs on Node 24; this is ${process.versions.node}.\n` +
      '  `npm ci` brings it as the package "node", whose install script was probably blocked.\n' +
      '  Next: allow that script (it is named in allowScripts of package.json) and run `npm ci` again, or use Node 24 or newer.\n',
  );
  process.exit(2);
}
