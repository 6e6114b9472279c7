// Batches, groups of writes, snapshots, bulk loads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { code, database, texts } from './helpers.mjs';

test('a batch is committed whole, and can be used again', async (t) => {
  const db = await database(t);
  const [one, two] = [await db.tree('one'), await db.tree('two', { counters: true })];
  const batch = db.batch().put(one, 'a', '1').put(one, 'b', '2').delete(one, 'a').add(two, 'n', 5);
  batch.deleteRange(one, { gte: 'x' });
  assert.equal(batch.length, 5);
  await db.write(batch, { sync: true });
  assert.deepEqual(texts(await one.entries().toArray()), [['b', '2']]);
  assert.equal(await two.counter('n'), 5n);
  db.writeSync(batch);
  assert.equal(await two.counter('n'), 10n);
  assert.equal(batch.clear().length, 0);
  await db.write(batch);
  await assert.rejects(db.write([]), { code: 'ERR_INVALID_ARG_TYPE' });
  await db.dropTree('two');
  await assert.rejects(db.write(db.batch().put(one, 'c', '').add(two, 'n')), code('NotFound'));
  assert.equal(await one.get('c'), null);
});

test('writes that are not awaited keep their order', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const writes = [];
  for (let n = 0; n < 2000; n++) {
    writes.push(tree.put('key', `${n}`, { sync: n % 500 === 0 }));
    if (n % 7 === 0) writes.push(tree.delete('key'));
    if (n % 11 === 0) writes.push(db.write(db.batch().put(tree, 'other', `${n}`)));
  }
  await Promise.all(writes);
  assert.equal(String(await tree.get('key')), '1999');
  assert.equal(String(await tree.get('other')), '1991');
});

test('a call of a group that fails fails alone', async (t) => {
  const db = await database(t);
  const [tree, gone] = [await db.tree('t'), await db.tree('gone')];
  await db.dropTree('gone');
  const results = await Promise.allSettled([
    tree.put('a', '1'),
    gone.put('b', '2'),
    tree.put('c'.repeat(1 << 20), '3'),
    tree.put('d', '4'),
  ]);
  assert.deepEqual(results.map(({ reason }) => reason?.code), [undefined, 'NotFound', 'Invalid', undefined]);
  assert.deepEqual(texts(await tree.keys().toArray()), ['a', 'd']);
});

test('a tree of another database is refused', async (t) => {
  const [one, two] = [await database(t), await database(t)];
  const tree = await one.tree('t');
  await assert.rejects(two.write(two.batch().put(tree, 'a', '1')), code('Invalid', /another database/));
  await two.transaction(async (tx) => assert.rejects(tx.put(tree, 'a', '1'), code('Invalid')));
  await assert.rejects(tree.get('a', { snapshot: two.snapshot() }), code('Invalid'));
});

test('a snapshot shows its moment until it is closed', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await tree.put('a', 'old');
  const snapshot = db.snapshot();
  await tree.put('a', 'new');
  await tree.put('b', 'new');
  const at = { snapshot };
  assert.equal(String(await tree.get('a', at)), 'old');
  assert.equal(String(tree.getSync('a', at)), 'old');
  assert.equal(String(await tree.get('a')), 'new');
  assert.equal(await tree.exists('b', at), false);
  assert.equal(tree.existsSync('b', at), false);
  assert.deepEqual((await tree.multiGet(['a', 'b'], at)).map((it) => it && String(it)), ['old', null]);
  assert.deepEqual(texts(await tree.entries(at).toArray()), [['a', 'old']]);
  const rows = tree.entries(at)[Symbol.asyncIterator]();
  snapshot.close();
  snapshot.close();
  assert.equal(snapshot.closed, true);
  assert.equal(String((await rows.next()).value[1]), 'old');
  await assert.rejects(tree.get('a', at), code('Closed', /snapshot/));
  assert.throws(() => tree.getSync('a', at), code('Closed'));
  assert.throws(() => [...tree.entries(at)], code('Closed'));
});

test('a bulk load takes effect at its end', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const load = await db.bulkLoad();
  const made = await load.newTree('made');
  const count = 30_000;
  for (let n = count - 1; n >= 0; n--) await load.put(n % 2 ? tree : made, `k${100_000 + n}`, 'x'.repeat(50));
  await load.putMany(tree, [['a', '1'], ['b', '2']]);
  assert.equal(await tree.first(), null);
  const told = [];
  const report = await load.finish({ progress: (progress) => void told.push(progress) });
  assert.equal(report.entries, count + 2);
  assert.ok(told.every(({ done, total }) => done <= total));
  assert.equal((await tree.keys().toArray()).length, count / 2 + 2);
  assert.equal((await made.keys().toArray()).length, count / 2);
  await assert.rejects(load.put(tree, 'c', ''), code('Closed'));
  await assert.rejects(load.finish(), code('Closed'));
});

test('a bulk load that fails or is cancelled leaves the trees as they are', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const twice = await db.bulkLoad({ duplicates: 'fail' });
  await twice.putMany(tree, [['a', '1'], ['a', '2']]);
  await assert.rejects(twice.finish(), code('Exists'));
  assert.equal(String(twice.duplicate()), 'a');
  const cancelled = await db.bulkLoad();
  await cancelled.put(tree, 'a', '1');
  cancelled.cancel();
  await assert.rejects(cancelled.finish(), code('Closed'));
  const dropped = await db.bulkLoad();
  await dropped.put(tree, 'a', '1');
  await dropped[Symbol.asyncDispose]();
  const large = await db.bulkLoad();
  await assert.rejects(
    (async () => {
      for (let n = 0; n < 100; n++) await large.put(tree, `${n}`.repeat(1 << 15), '');
      await large.finish();
    })(),
    code('Invalid'),
  );
  await assert.rejects(db.bulkLoad({ duplicates: 'maybe' }), code('Invalid', /replace or fail/));
  assert.equal(await tree.first(), null);
});
