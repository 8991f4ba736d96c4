// Runs at each `npm ci`, with whatever Node.js the machine has, so it is plain JavaScript. With an older Node.js, npm 9 leaves out the Node 24 of the
// lock file, and the first command would end with an error that names no cause.
const { engines } = require("../package.json");

const least = Number(/\d+/.exec(engines.node)[0]);
if (Number(process.versions.node.split(".")[0]) < least) {
  console.error(
    `Muster needs Node.js ${least} or newer to be installed; this is ${process.version}. Install a newer Node.js, then run npm ci again.`,
  );
  process.exit(1);
}
