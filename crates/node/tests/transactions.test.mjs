// Transactions, their locks, and the threads that wait for these.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { code, database, lockWaits, texts } from './helpers.mjs';

test('a transaction commits at its end, and rolls back if it throws', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const returned = await db.transaction(async (tx) => {
    await tx.put(tree, 'a', '1');
    await tx.insert(tree, 'b', '2');
    assert.equal(String(await tx.get(tree, 'a')), '1');
    assert.equal(await tree.get('a'), null);
    assert.deepEqual(texts(await tx.multiGet(tree, ['b', 'a'])), ['2', '1']);
    assert.deepEqual(texts(await tx.entries(tree).toArray()), [['a', '1'], ['b', '2']]);
    return tx;
  });
  assert.equal(returned.ended, true);
  assert.deepEqual(texts(await tree.entries().toArray()), [['a', '1'], ['b', '2']]);
  const thrown = new Error('thrown');
  const failed = db.transaction(async (tx) => {
    await tx.deleteRange(tree, { prefix: 'a' });
    assert.equal(await tx.exists(tree, 'a'), false);
    throw thrown;
  });
  await assert.rejects(failed, (error) => error === thrown);
  assert.equal(String(await tree.get('a')), '1');
  await assert.rejects(returned.put(tree, 'c', ''), code('Closed', /transaction/));
  await assert.rejects(returned.commit(), code('Closed'));
  await assert.rejects(db.transaction(5), { code: 'ERR_INVALID_ARG_TYPE' });
});

test('all calls of a transaction', async (t) => {
  const db = await database(t);
  const [tree, counters] = [await db.tree('t'), await db.tree('c', { counters: true })];
  await Promise.all(['1', '2', '3', '4'].map((key) => tree.put(key, `v${key}`)));
  const tx = db.begin({ isolation: 'serializable', sync: true });
  assert.equal(String(await tx.getForUpdate(tree, '1')), 'v1');
  assert.equal(String(await tx.getForShare(tree, '2', { wait: 'nowait' })), 'v2');
  assert.deepEqual(texts(await tx.popFirst(tree)), ['1', 'v1']);
  assert.deepEqual(texts(await tx.popLast(tree)), ['4', 'v4']);
  assert.equal(String(await tx.take(tree, '2')), 'v2');
  assert.equal(String(await tx.replace(tree, '3', 'new')), 'v3');
  await tx.add(counters, 'n', 7);
  await tx.delete(tree, 'none');
  await assert.rejects(tx.insert(tree, '3', ''), code('Exists'));
  const savepoint = await tx.savepoint();
  await tx.put(tree, '5', '');
  await savepoint.rollback();
  await tx.put(tree, '6', '');
  await savepoint.release();
  await assert.rejects(savepoint.rollback(), code('Closed', /savepoint/));
  const keys = await tx.keys(tree, { reverse: true, lock: 'update' }).toArray();
  assert.deepEqual(texts(keys), ['6', '3']);
  await tx.commit();
  assert.deepEqual(texts(await tree.values().toArray()), ['new', '']);
  assert.equal(await counters.counter('n'), 7n);
  for (const [options, message] of [
    [{ isolation: 'best' }, /serializable/],
    [{ isolation: 'serializable', snapshotIsolation: true }, /RepeatableRead/],
  ]) {
    assert.throws(() => db.begin(options), code('Invalid', message));
  }
  assert.throws(() => db.begin({ lockTimeout: -1 }), { code: 'ERR_INVALID_ARG_TYPE' });
  const other = db.begin();
  await assert.rejects(other.getForUpdate(tree, '1', { wait: 'soon' }), code('Invalid', /nowait/));
  await assert.rejects(other.entries(tree, { lock: 'hard' }).toArray(), code('Invalid', /update or share/));
  await other[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

test('a commit fails if a write that nobody awaited has failed', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await tree.put('a', '1');
  const failed = db.transaction(async (tx) => {
    tx.put(tree, 'b', '2').catch(() => {});
    tx.insert(tree, 'a', '3').catch(() => {});
    tx.put(tree, 'c', '4').catch(() => {});
  });
  await assert.rejects(failed, code('Exists', /earlier write/));
  assert.deepEqual(texts(await tree.keys().toArray()), ['a']);
  // One that was awaited is the program's to decide.
  await db.transaction(async (tx) => {
    await tx.insert(tree, 'a', '3').catch(() => {});
    tx.put(tree, 'b', '2');
  });
  assert.deepEqual(texts(await tree.keys().toArray()), ['a', 'b']);
});

test('calls of a transaction run in their order without being awaited', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await db.transaction(async (tx) => {
    for (let n = 0; n < 500; n++) tx.put(tree, 'a', `${n}`);
    assert.equal(String(await tx.get(tree, 'a')), '499');
    tx.delete(tree, 'a');
  });
  assert.equal(await tree.get('a'), null);
});

test('more transactions wait for a lock than any pool has threads', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await tree.put('n', '0');
  const waiting = 200;
  const first = db.begin();
  await first.getForUpdate(tree, 'n');
  const others = Array.from({ length: waiting }, () =>
    db.transaction(
      async (tx) => {
        const n = Number(await tx.getForUpdate(tree, 'n'));
        await tx.put(tree, 'n', `${n + 1}`);
      },
      { lockTimeout: 60_000 },
    ),
  );
  await lockWaits(db, waiting);
  // The program goes on meanwhile: gets, other writes, and libuv's own pool.
  assert.equal(String(await tree.get('n')), '0');
  await tree.put('other', '1');
  await import('node:fs/promises').then((fs) => fs.readdir(db.path));
  await first.commit();
  await Promise.all(others);
  assert.equal(String(await tree.get('n')), `${waiting}`);
});

test('a transaction may await a write behind writes that wait for its lock', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const blocked = [];
  // If `other` waited for the blocked writes, these would end with LockTimeout.
  await db.transaction(async (tx) => {
    await tx.put(tree, 'mine', '1');
    for (let n = 0; n < 50; n++) blocked.push(tree.put('mine', `${n + 2}`));
    await tree.put('other', '1');
    await Promise.all([tree.put('x', ''), db.write(db.batch().put(tree, 'y', ''))]);
  });
  await Promise.all(blocked);
  assert.notEqual(String(await tree.get('mine')), '1');
});

test('deadlocks, conflicts and timeouts have their codes, and retries solve them', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await tree.put('a', '0');
  await tree.put('b', '0');
  /** Returns a function whose calls wait for the first two of them. */
  const pair = () => {
    let [count, release] = [0];
    const both = new Promise((resolve) => (release = resolve));
    return () => (++count >= 2 && release(), both);
  };
  const cross = async (first, second, met, options) =>
    db.transaction(async (tx) => {
      await tx.put(tree, first, 'x');
      await met();
      await tx.put(tree, second, 'x');
    }, options);
  let met = pair();
  const results = await Promise.allSettled([cross('a', 'b', met), cross('b', 'a', met)]);
  assert.deepEqual(results.map(({ reason }) => reason?.code).filter(Boolean), ['Deadlock']);
  met = pair();
  await Promise.all([cross('a', 'b', met, { retries: 20 }), cross('b', 'a', met, { retries: 20 })]);

  const add = (options) =>
    db.transaction(
      async (tx) => {
        const n = Number(await tx.get(tree, 'n'));
        await tx.put(tree, 'n', `${n + 1}`);
      },
      { snapshotIsolation: true, ...options },
    );
  await Promise.all(Array.from({ length: 20 }, () => add({ retries: 1000 })));
  assert.equal(String(await tree.get('n')), '20');
  const old = db.begin({ snapshotIsolation: true });
  await old.get(tree, 'n');
  await add();
  await assert.rejects(old.put(tree, 'n', '0'), code('Conflict'));
  await old.rollback();

  const holder = db.begin();
  await holder.put(tree, 'a', '1');
  const late = db.begin({ lockTimeout: 50 });
  await assert.rejects(late.put(tree, 'a', '2'), code('LockTimeout'));
  await assert.rejects(late.getForUpdate(tree, 'a', { wait: 'nowait' }), code('Busy'));
  await late.rollback();
  const cancelled = db.begin();
  const waits = db.stats().lock_waits;
  const put = cancelled.put(tree, 'a', '2');
  await lockWaits(db, waits + 1);
  cancelled.cancel();
  await assert.rejects(put, code('Cancelled'));
  await cancelled.rollback();
  await holder.rollback();
});

test('workers take different jobs of a queue', async (t) => {
  const db = await database(t);
  const jobs = await db.tree('jobs');
  await Promise.all(Array.from({ length: 20 }, (_, n) => jobs.put(`${n + 10}`, '')));
  const transactions = Array.from({ length: 20 }, () => db.begin());
  const taken = await Promise.all(transactions.map((tx) => tx.popFirst(jobs, { wait: 'skip-locked' })));
  assert.equal(new Set(taken.map(([key]) => String(key))).size, 20);
  assert.equal(await db.begin().popFirst(jobs, { wait: 'skip-locked' }), null);
  await Promise.all(transactions.map((tx) => tx.commit()));
  assert.equal(await jobs.first(), null);
});

test('an iterator that locks rows locks none that the program does not get to', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await Promise.all(Array.from({ length: 10 }, (_, n) => tree.put(`${n}`, '')));
  const [one, two] = [db.begin(), db.begin()];
  for await (const [key] of one.entries(tree, { lock: 'update' })) if (String(key) === '3') break;
  await assert.rejects(two.getForUpdate(tree, '3', { wait: 'nowait' }), code('Busy'));
  await two.getForUpdate(tree, '4', { wait: 'nowait' });
  await one.rollback();
  await two.rollback();
});

test('prepared transactions are committed by their name', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const [one, two] = [db.begin(), db.begin()];
  await one.put(tree, 'a', '1');
  await two.put(tree, 'b', '1');
  await one.prepare('one');
  await two.prepare(Buffer.from('two'));
  assert.equal(one.ended, true);
  assert.deepEqual(texts(db.prepared()), ['one', 'two']);
  // A write to a row of a prepared transaction waits for it, and no other write waits with it.
  const waits = tree.put('a', '2');
  await tree.put('c', '1');
  await db.commitPrepared('one');
  await waits;
  await db.rollbackPrepared('two');
  await assert.rejects(db.commitPrepared('two'), code('NotFound'));
  assert.deepEqual(texts(await tree.entries().toArray()), [['a', '2'], ['c', '1']]);
});
