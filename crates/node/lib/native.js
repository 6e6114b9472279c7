'use strict';

// The native addon. A package has one for each platform; see xtask/src/node.rs.

const path = require('node:path');

const PLATFORMS = ['linux-x64-gnu', 'linux-arm64-gnu'];

/** Returns the name of this platform, as in the names of the addons. */
function platform() {
  const { glibcVersionRuntime } = process.report?.getReport?.().header ?? {};
  return `${process.platform}-${process.arch}${glibcVersionRuntime ? '-gnu' : ''}`;
}

function load() {
  // Tests and programs that package the addon themselves name it.
  if (process.env.FRONDB_NODE_ADDON) return require(path.resolve(process.env.FRONDB_NODE_ADDON));
  const name = platform();
  if (!PLATFORMS.includes(name)) {
    throw new Error(
      `frondb has no addon for ${name}, only for ${PLATFORMS.join(' and ')}: build one with ` +
        '`make node`, and name it in FRONDB_NODE_ADDON',
    );
  }
  const file = path.join(__dirname, '..', `frondb.${name}.node`);
  try {
    return require(file);
  } catch (error) {
    throw new Error(
      `cannot load ${file}: ${error.message}: build it with \`make node\`, or install the package again`,
      { cause: error },
    );
  }
}

module.exports = load();
