// The engines of compare.mjs, each with the same calls: puts without a sync, gets, scans. `memory`
// is the cache, in bytes, for engines that have one.

import { createRequire } from 'node:module';
import path from 'node:path';

// The other engines are installed where the benchmark runs, and not with this package.
const require = createRequire(path.join(process.cwd(), 'package.json'));
const { open } = await import('../index.js');

/** FronDB; `getSync` and `for` read on the thread of JavaScript, as lmdb does. */
async function frondb(directory, memory) {
  const db = await open(directory, { memory, commitSync: false });
  const tree = await db.tree('rows');
  return {
    put: (key, value) => tree.put(key, value),
    putHere: (key, value) => tree.putSync(key, value),
    get: (key) => tree.get(key),
    getHere: (key) => tree.getSync(key),
    scan: () => tree.entries(),
    scanHere: () => tree.entries(),
    settle: async () => {
      await db.flush();
      await db.waitSettled();
    },
    close: () => db.close(),
  };
}

/** lmdb, whose cache is the system's. Its `get` of a key reads on the thread of JavaScript. */
async function lmdb(directory) {
  const db = require('lmdb').open({
    path: directory,
    encoding: 'binary',
    keyEncoding: 'binary',
    noSync: true,
    // What lmdb recommends for a database larger than memory; with read-ahead it is much slower there.
    noReadAhead: true,
    mapSize: 16 << 30,
  });
  return {
    put: (key, value) => db.put(key, value),
    putHere: (key, value) => db.putSync(key, value),
    // What a program calls that must not wait for the disk on its thread.
    get: (key) => db.prefetch([key]).then(() => db.get(key)),
    getHere: (key) => db.get(key),
    scanHere: () => db.getRange().map(({ key, value }) => [key, value]),
    settle: () => db.flushed,
    close: () => db.close(),
  };
}

/** classic-level, which is LevelDB. */
async function level(directory, memory) {
  const { ClassicLevel } = require('classic-level');
  const db = new ClassicLevel(directory, {
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
    cacheSize: memory >> 1,
    writeBufferSize: Math.min(memory >> 2, 64 << 20),
  });
  await db.open();
  return {
    put: (key, value) => db.put(key, value),
    get: (key) => db.get(key),
    getHere: (key) => db.getSync(key),
    scan: () => db.iterator(),
    settle: () => db.compactRange(Buffer.alloc(1), Buffer.alloc(17, 0xff)),
    close: () => db.close(),
  };
}

export const ENGINES = { frondb, lmdb, level };
