// Closes, worker threads, exits, garbage collection: what a program can do with open objects.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { PACKAGE, code, database, directory, lockWaits, open, texts } from './helpers.mjs';

const run = promisify(execFile);

/** Runs a program in a process of its own; `db` is a new database, and `tree` a tree of it. */
async function program(body, { at = path.join(directory(), 'db'), flags = [] } = {}) {
  const source = `
    const { open } = require(${JSON.stringify(PACKAGE)});
    (async () => {
      const db = await open(${JSON.stringify(at)}, { memory: '32MiB' });
      const tree = await db.tree('t');
      ${body}
    })();`;
  return { at, ...(await run(process.execPath, [...flags, '-e', source], { timeout: 60_000 })) };
}

/** Runs a worker thread with the package, and returns what it posts. */
function worker(body, data) {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { open } = require(${JSON.stringify(PACKAGE)});
    (async () => { ${body} })().catch((error) => parentPort.postMessage(String(error)));`;
  return new Worker(source, { eval: true, workerData: data });
}

test('every call after a close fails with Closed', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await Promise.all(['a', 'b', 'c'].map((key) => tree.put(key, '1')));
  const [tx, snapshot, batch, load] = [db.begin(), db.snapshot(), db.batch(), await db.bulkLoad()];
  const rows = tree.entries()[Symbol.asyncIterator]();
  await rows.next();
  const seen = tx.entries(tree)[Symbol.asyncIterator]();
  await seen.next();
  const savepoint = await tx.savepoint();
  await db.close();
  await db.close();
  assert.equal(db.closed, true);
  const calls = {
    get: () => tree.get('a'), getSync: () => tree.getSync('a'), exists: () => tree.exists('a'),
    multiGet: () => tree.multiGet(['a']), atSnapshot: () => tree.get('a', { snapshot }),
    put: () => tree.put('a', ''), putSync: () => tree.putSync('a', ''), clear: () => tree.clear(),
    deleteRange: () => tree.deleteRange({ prefix: 'a' }), add: () => tree.add('a'),
    entries: () => tree.entries()[Symbol.asyncIterator](), toArray: () => tree.keys().toArray(), sync: () => [...tree.entries()], first: () => tree.first(),
    stats: () => tree.stats(), estimate: () => tree.estimate(), rows: () => rows.next(),
    dbStats: () => db.stats(), listTrees: () => db.listTrees(), tree: () => db.tree('t'),
    begin: () => db.begin(), snapshot: () => db.snapshot(), batch: () => db.batch(),
    write: () => db.write(batch), writeSync: () => db.writeSync(batch), flush: () => db.flush(),
    backup: () => db.backup(directory()), bulkLoad: () => db.bulkLoad(),
    txGet: () => tx.get(tree, 'a'), txPut: () => tx.put(tree, 'a', ''), commit: () => tx.commit(),
    rollback: () => tx.rollback(), txRows: () => seen.next(), savepoint: () => savepoint.rollback(),
    load: () => load.finish(), transaction: () => db.transaction(() => {}),
  };
  const synchronous = [
    'getSync', 'putSync', 'sync', 'stats', 'dbStats', 'listTrees', 'begin', 'snapshot', 'batch', 'writeSync', 'entries',
  ];
  for (const [name, call] of Object.entries(calls)) {
    if (synchronous.includes(name)) assert.throws(call, code('Closed'), name);
    // Without `async`, a call that throws instead of rejecting fails the test.
    else await assert.rejects(call(), code('Closed'), name);
  }
  snapshot.close();
  await tx[Symbol.asyncDispose]();
  await rows.return();
});

test('a close waits for calls in progress and ends waits for locks', async () => {
  const db = await database();
  const tree = await db.tree('t');
  const puts = Array.from({ length: 1000 }, (_, n) => tree.put(`${n}`, 'x'));
  const gets = Array.from({ length: 100 }, (_, n) => tree.get(`${n}`));
  await db.close();
  await Promise.all([...puts, ...gets]);
  const again = await open(db.path, { memory: '32MiB' });
  const same = await again.openTree('t');
  assert.equal((await same.keys().toArray()).length, 1000);
  const [one, two] = [again.begin(), again.begin({ lockTimeout: 60_000 })];
  await one.put(same, 'a', '1');
  const waits = two.put(same, 'a', '2');
  await lockWaits(again, 1);
  await Promise.all([again.close(), assert.rejects(waits, code('Cancelled'))]);
});

test('a second process gets Busy, and the path of a closed database is free', async (t) => {
  const db = await database(t);
  await assert.rejects(program('', { at: db.path }), /Busy/);
  await db.close();
  await program("await tree.put('a', '1'); await db.close();", { at: db.path });
});

test('opens of one path share the database until the last close', async () => {
  const at = path.join(directory(), 'db');
  const [one, two] = await Promise.all([open(at, { memory: '32MiB' }), open(at, { memory: '32MiB' })]);
  await assert.rejects(open(at, { memory: '64MiB' }), code('Invalid', /other options/));
  const [mine, theirs] = [await one.tree('t'), await two.tree('t')];
  await mine.put('a', '1');
  assert.equal(String(theirs.getSync('a')), '1');
  const left = one.begin();
  await left.put(mine, 'a', '2');
  await one.close();
  assert.throws(() => mine.getSync('a'), code('Closed'));
  await theirs.put('a', '3');
  assert.equal(String(await theirs.get('a')), '3');
  await two.close();
  const three = await open(at, { memory: '48MiB' });
  assert.equal(String(await (await three.openTree('t')).get('a')), '3');
  await three.close();
});

test('worker threads share a database', async (t) => {
  const db = await database(t);
  const tree = await db.tree('n', { counters: true });
  const body = `
    const db = await open(workerData, { memory: '32MiB', commitSync: false });
    const tree = await db.openTree('n');
    for (let n = 0; n < 200; n++) await tree.add('sum');
    await db.transaction(async (tx) => tx.add(tree, 'sum', 100), { retries: 100 });
    await db.close();
    parentPort.postMessage('done');`;
  const workers = Array.from({ length: 4 }, () => worker(body, db.path));
  const said = await Promise.all(workers.map(async (it) => (await once(it, 'message'))[0]));
  assert.deepEqual(said, ['done', 'done', 'done', 'done']);
  assert.equal(await tree.counter('sum'), 1200n);
});

test('a worker that ends while calls run harms nobody', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const body = `
    const db = await open(workerData, { memory: '32MiB', commitSync: false });
    const tree = await db.openTree('t');
    const lock = db.begin();
    await lock.put(tree, 'locked', '1');
    db.begin({ lockTimeout: 60000 }).put(tree, 'locked', '2');
    const forever = async (n) => {
      for (;;) {
        parentPort.postMessage('turn');
        await Promise.all([tree.put('k' + n, 'x'.repeat(1000)), tree.get('k' + n), tree.keys().toArray()]);
      }
    };
    await Promise.all([1, 2, 3].map(forever));`;
  for (let round = 0; round < 5; round++) {
    const it = worker(body, db.path);
    for (let turn = 0; turn <= 5 * round; turn++) assert.equal((await once(it, 'message'))[0], 'turn');
    await it.terminate();
    await tree.put('main', `${round}`);
  }
  // The locks of the transactions that went with their thread are free.
  await db.transaction(async (tx) => tx.put(tree, 'locked', '3'));
  assert.equal(String(await tree.get('locked')), '3');
});

test('only workers may load the addon, one after the other', async () => {
  const at = path.join(directory(), 'db');
  const body = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { open } = require(${JSON.stringify(PACKAGE)});
    (async () => {
      for (;;) {
        try {
          const db = await open(workerData, { memory: '32MiB' });
          const tree = await db.tree('t');
          await tree.put('a', '1');
          for (let n = 0; n < 1000; n++) tree.put('b' + n, 'x').catch(() => {});
          parentPort.postMessage('done');
          return;
        } catch (error) {
          // The database of the worker that was stopped closes in the background.
          if (error.code !== 'Busy') throw error;
        }
      }
    })();`;
  const source = `
    const { once } = require('node:events');
    const { Worker } = require('node:worker_threads');
    (async () => {
      for (let round = 0; round < 3; round++) {
        const it = new Worker(${JSON.stringify(body)}, { eval: true, workerData: ${JSON.stringify(at)} });
        await once(it, 'message');
        await it.terminate();
      }
      console.log('alive');
    })();`;
  const { stdout } = await run(process.execPath, ['-e', source], { timeout: 60_000 });
  assert.equal(stdout, 'alive\n');
});

test('an open database does not keep the process, and calls in progress do', async () => {
  const { stdout, at } = await program(`
    tree.put('a', '1').then(() => console.log('written'));
    const rows = tree.keys()[Symbol.asyncIterator]();
    await rows.next();
    db.begin().put(tree, 'b', '2').then(() => console.log('locked'));`);
  assert.deepEqual(stdout.trim().split('\n').sort(), ['locked', 'written']);
  const after = await program('console.log(String(await tree.get("a")), await tree.get("b")); await db.close()', { at });
  assert.equal(after.stdout, '1 null\n');
});

test('process.exit and an exception end a process with calls in progress', async () => {
  const busy = `for (let n = 0; n < 2000; n++) { tree.put('k' + n, 'x'.repeat(500)).catch(() => {}); tree.get('k' + n); }
    const lock = db.begin(); await lock.put(tree, 'a', '1'); db.begin().put(tree, 'a', '2').catch(() => {});
    db.flush(); tree.keys().toArray();`;
  await program(`${busy} process.exit(0);`);
  await program(`${busy} await tree.put('last', ''); process.exit(0);`);
  await assert.rejects(program(`${busy} throw new Error('uncaught');`), /uncaught/);
});

test('commits that were awaited survive kill -9', async () => {
  const at = path.join(directory(), 'db');
  const source = `
    const { open } = require(${JSON.stringify(PACKAGE)});
    (async () => {
      const db = await open(${JSON.stringify(at)}, { memory: '32MiB' });
      const tree = await db.tree('t');
      for (let n = 0; ; n++) { await tree.put(String(n), 'x'); process.stdout.write(n + '\\n'); }
    })();`;
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (data) => {
    said += data;
    if (said.split('\n').length >= 50) child.kill('SIGKILL');
  });
  await once(child, 'close');
  const last = Number(said.trim().split('\n').at(-1));
  const db = await open(at, { memory: '32MiB' });
  const tree = await db.openTree('t');
  assert.ok((await tree.keys().toArray()).length >= last);
  for (let n = 0; n < last; n++) assert.ok(tree.existsSync(String(n)), `${n} is lost`);
  await db.close();
});

test('objects that are forgotten are collected, and their locks freed', async () => {
  const { stdout } = await program(
    `
    const collect = async () => { for (let n = 0; n < 5; n++) { gc(); await new Promise(setImmediate); } };
    await Promise.all(Array.from({ length: 2000 }, (_, n) => tree.put('k' + n, 'x', { sync: false })));
    await (async () => { await db.begin().put(tree, 'locked', '1'); })();
    for (let n = 0; n < 1000; n++) { db.snapshot(); await tree.keys()[Symbol.asyncIterator]().next(); }
    await collect();
    await db.transaction((tx) => tx.put(tree, 'locked', '2'), { lockTimeout: 60000 });
    console.log(String(await tree.get('locked')));
    await (async () => { const other = await open(${JSON.stringify(path.join(directory(), 'other'))}, { memory: '32MiB' }); await other.tree('t'); })();
    await collect();
    await db.close();`,
    { flags: ['--expose-gc'] },
  );
  assert.equal(stdout, '2\n');
});

test('a program that calls without waiting uses few threads', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await Promise.all(Array.from({ length: 20_000 }, (_, n) => tree.put(`${n}`, 'x')));
  await Promise.all(Array.from({ length: 20_000 }, (_, n) => tree.get(`${n}`)));
  const threads = (await import('node:fs')).readdirSync('/proc/self/task').length;
  assert.ok(threads < 120, `${threads} threads`);
  assert.deepEqual(texts(await tree.keys({ limit: 1 }).toArray()), ['0']);
});
