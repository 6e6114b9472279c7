// What the tests share.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
/** The package under test; `make node` names the installed one. */
export const PACKAGE = process.env.FRONDB_NODE_PACKAGE ?? fileURLToPath(new URL('..', import.meta.url));
export const frondb = require(PACKAGE);
export const { open, FrondbError } = frondb;

const directories = [];
after(() => directories.forEach((directory) => fs.rmSync(directory, { recursive: true, force: true })));

/** Returns a new empty directory, removed at the end. */
export function directory() {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'frondb-node-'));
  directories.push(made);
  return made;
}

/** Opens a new database with little memory, and closes it at the end of the test. */
export async function database(test, options) {
  const db = await open(path.join(directory(), 'db'), { memory: '32MiB', commitSync: false, ...options });
  test?.after(() => db.close());
  return db;
}

/** Returns a check for `assert.rejects` and `assert.throws`: a FrondbError of this code. */
export function code(wanted, message = /./) {
  return (error) => {
    if (!(error instanceof FrondbError) || error.code !== wanted || !message.test(error.message)) throw error;
    return true;
  };
}

/** Returns the texts of buffers, and of rows of them. */
export const texts = (rows) => rows.map((row) => (Array.isArray(row) ? row.map(String) : String(row)));

/** Waits for the next turn of the event loop. */
export const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Waits until so many calls have begun to wait for a lock since the open. */
export async function lockWaits(db, count) {
  while (db.stats().lock_waits < count) await turn();
}
