// Keys, values and ranges.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { code, database, frondb, texts } from './helpers.mjs';

test('keys and values are buffers, arrays of bytes or strings, and come back as buffers', async (t) => {
  const tree = await (await database(t)).tree('t');
  await tree.put('text', Buffer.from([0, 255]));
  await tree.put(new Uint8Array([0, 1]), 'grün 🌿');
  await tree.put(Buffer.alloc(0), '');
  assert.deepEqual(await tree.get('text'), Buffer.from([0, 255]));
  assert.equal(String(tree.getSync(Buffer.from([0, 1]))), 'grün 🌿');
  assert.deepEqual(await tree.get(''), Buffer.alloc(0));
  assert.equal(await tree.get('none'), null);
  assert.equal(tree.getSync('none'), null);
  assert.equal(await tree.exists('text'), true);
  assert.equal(tree.existsSync('none'), false);
  const multi = await tree.multiGet(['none', 'text', '']);
  assert.deepEqual(multi, [null, Buffer.from([0, 255]), Buffer.alloc(0)]);
  assert.deepEqual(await tree.multiGet([]), []);
  assert.deepEqual(await tree.multiGet(['text']), [Buffer.from([0, 255])]);
});

test('a call copies its arguments', async (t) => {
  const tree = await (await database(t)).tree('t');
  const [key, value] = [Buffer.from('key'), Buffer.from('value')];
  const put = tree.put(key, value);
  key.fill(0);
  value.fill(0);
  await put;
  const wanted = Buffer.from('key');
  const got = tree.get(wanted);
  wanted.fill(0);
  assert.equal(String(await got), 'value');
});

test('values of all sizes come back whole, from each call', async (t) => {
  const tree = await (await database(t)).tree('t');
  for (const size of [0, 1, 4095, 4096, 16384, 16385, 65536, 3 << 20]) {
    const value = Buffer.alloc(size, size % 251);
    await tree.put(`${size}`, value);
    assert.ok((await tree.get(`${size}`)).equals(value), `get ${size}`);
    assert.ok(tree.getSync(`${size}`).equals(value), `getSync ${size}`);
    const [a, b] = await tree.multiGet([`${size}`, `${size}`]);
    assert.ok(a.equals(value) && b.equals(value), `multiGet ${size}`);
    for await (const [key, found] of tree.entries({ prefix: `${size}`, lte: `${size}` })) {
      assert.ok(String(key) === `${size}` && found.equals(value), `entries ${size}`);
    }
  }
});

test('many gets at once have their own results, in any number', async (t) => {
  const tree = await (await database(t)).tree('t');
  const count = 1000;
  await Promise.all(Array.from({ length: count }, (_, n) => tree.put(`k${n}`, `v${n}`)));
  for (const some of [1, 2, 15, 16, 17, 63, 64, 65, 256, 257, count]) {
    const gets = Array.from({ length: some }, (_, n) => tree.get(n % 3 === 0 ? `none${n}` : `k${n}`));
    (await Promise.all(gets)).forEach((value, n) => {
      assert.equal(value && String(value), n % 3 === 0 ? null : `v${n}`);
    });
  }
});

test('a wrong argument is an error that says which, and harms no other call', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const good = tree.put('good', '1');
  const wrong = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
  for (const bad of [5, null, undefined, {}, [1], true, new ArrayBuffer(2), new Uint16Array(2)]) {
    await assert.rejects(tree.put(bad, 'x'), { ...wrong, message: /^key is / });
    await assert.rejects(tree.put('x', bad), { ...wrong, message: /^value is / });
    await assert.rejects(tree.get(bad), { ...wrong, message: /^key is / });
    assert.throws(() => tree.getSync(bad), wrong);
    assert.throws(() => tree.putSync('x', bad), wrong);
    assert.throws(() => db.batch().put(tree, bad, 'x'), wrong);
  }
  await good;
  assert.deepEqual(texts(await tree.keys().toArray()), ['good']);
  assert.throws(() => tree.entries({ snapshot: 5 }), wrong);
  assert.throws(() => tree.entries({ limit: -1 }), wrong);
  assert.throws(() => tree.entries('x'), wrong);
  assert.throws(() => db.batch().put('t', 'x', 'y'), wrong);
  await assert.rejects(db.tree(5), wrong);
  await assert.rejects(tree.put('x', 'y', { sync: 1 }), wrong);
  await assert.rejects(tree.put('x'.repeat(1 << 20), 'y'), code('Invalid', /key/));
  assert.throws(() => new frondb.Tree(), /db.tree/);
  assert.throws(() => new frondb.Db(), /open/);
});

test('ranges have bounds, prefixes, directions and limits', async (t) => {
  const tree = await (await database(t)).tree('t');
  const keys = ['a', 'b', 'b\0', 'ba', 'bb', 'c', 'd'];
  await Promise.all(keys.map((key) => tree.put(key, key.toUpperCase())));
  const found = async (range) => texts(await tree.keys(range).toArray()).join(' ');
  assert.equal(await found({ gte: 'b', lt: 'c' }), 'b b\0 ba bb');
  assert.equal(await found({ gt: 'b', lte: 'c' }), 'b\0 ba bb c');
  assert.equal(await found({ gt: 'a', gte: 'bb', lt: 'd', lte: 'z' }), 'bb c');
  assert.equal(await found({ prefix: 'b' }), 'b b\0 ba bb');
  assert.equal(await found({ prefix: 'b', gt: 'b\0', limit: 1 }), 'ba');
  assert.equal(await found({ prefix: 'b', reverse: true, limit: 2 }), 'bb ba');
  assert.equal(await found({ reverse: true }), [...keys].reverse().join(' '));
  assert.equal(await found({ limit: 0 }), '');
  assert.equal(await found({ gte: 'c', lt: 'b' }), '');
  assert.equal(await found({ prefix: '' }), keys.join(' '));
  assert.deepEqual(texts(await tree.values({ limit: 2 }).toArray()), ['A', 'B']);
  assert.deepEqual(texts([...tree.entries({ gte: 'c' })]), [['c', 'C'], ['d', 'D']]);
  assert.deepEqual(texts([await tree.first(), await tree.last()]), [['a', 'A'], ['d', 'D']]);
});

test('long scans return all rows in order, in both directions and both forms', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  const name = (n) => String(n).padStart(6, '0');
  const count = 20_000;
  const batch = db.batch();
  for (let n = 0; n < count; n++) batch.put(tree, name(n), `value ${n}`);
  await db.write(batch);
  for (const isFlushed of [false, true]) {
    if (isFlushed) await db.flush();
    let next = 0;
    for await (const [key, value] of tree) {
      assert.equal(String(key), name(next));
      assert.equal(String(value), `value ${next++}`);
    }
    assert.equal(next, count);
    for await (const key of tree.keys({ reverse: true })) assert.equal(String(key), name(--next));
    assert.equal(next, 0);
    for (const [key] of tree.entries()) assert.equal(String(key), name(next++));
    assert.equal(next, count);
    for (const limit of [1, 15, 16, 17, 80, 81, 5000]) {
      assert.equal((await tree.keys({ limit }).toArray()).length, limit);
    }
  }
});

test('an iteration shows the state at its begin, and ends when it is left', async (t) => {
  const tree = await (await database(t)).tree('t');
  await Promise.all(Array.from({ length: 500 }, (_, n) => tree.put(`k${1000 + n}`, 'old')));
  const range = tree.entries();
  const rows = range[Symbol.asyncIterator]();
  await tree.put('k0', 'new');
  await tree.deleteRange({ gte: 'k1400' });
  let count = 0;
  for await (const [, value] of rows) {
    assert.equal(String(value), 'old');
    count++;
  }
  assert.equal(count, 500);
  assert.equal((await rows.next()).done, true);
  assert.equal(String((await range.toArray())[0][0]), 'k0');
  for await (const row of range) {
    assert.equal(row.length, 2);
    break;
  }
  const left = range[Symbol.asyncIterator]();
  await left.next();
  assert.deepEqual(await left.return('x'), { value: 'x', done: true });
  assert.equal((await left.next()).done, true);
});

test('calls of next that are not awaited return the rows in order', async (t) => {
  const tree = await (await database(t)).tree('t');
  await Promise.all(Array.from({ length: 100 }, (_, n) => tree.put(String(n + 100), '')));
  const rows = tree.keys()[Symbol.asyncIterator]();
  const all = await Promise.all(Array.from({ length: 102 }, () => rows.next()));
  assert.deepEqual(all.slice(0, 100).map(({ value }) => Number(value)), Array.from({ length: 100 }, (_, n) => n + 100));
  assert.ok(all.slice(100).every(({ done }) => done));
});

test('trees are created, found, renamed and dropped', async (t) => {
  const db = await database(t);
  const one = await db.createTree('one', { codec: 'zstd:3' });
  await assert.rejects(db.createTree('one'), code('Exists'));
  await assert.rejects(db.openTree('two'), code('NotFound', /two/));
  await assert.rejects(db.tree('x', { colour: 'red' }), code('Invalid', /colour/));
  await assert.rejects(db.tree('x', { preset: 'fast' }), code('Invalid', /secondary or aggressive/));
  await one.put('a', '1');
  await db.renameTree('one', 'two');
  assert.equal(one.name, 'two');
  assert.deepEqual(db.listTrees(), ['two']);
  await one.setOptions({ codec: 'lz4' });
  assert.equal(String(await (await db.openTree('two')).get('a')), '1');
  await db.dropTree('two');
  await assert.rejects(one.get('a'), code('NotFound'));
  await assert.rejects(one.put('a', '2'), code('NotFound'));
  assert.throws(() => one.getSync('a'), code('NotFound'));
});

test('deletes, replaces and counters', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t', { preset: 'secondary' });
  assert.equal(await tree.replace('a', '1'), null);
  assert.equal(String(await tree.replace('a', '2')), '1');
  assert.equal(String(await tree.take('a')), '2');
  assert.equal(await tree.take('a'), null);
  await Promise.all(['a1', 'a2', 'b1'].map((key) => tree.put(key, '')));
  await tree.delete('a1');
  tree.deleteSync('none');
  await assert.rejects(tree.deleteRange({}), code('Invalid', /clear/));
  await tree.deleteRange({ prefix: 'a' });
  assert.deepEqual(texts(await tree.keys().toArray()), ['b1']);
  await tree.clear();
  assert.equal(await tree.first(), null);
  await assert.rejects(tree.add('a', 1), code('Invalid', /update function/));
  const counters = await db.tree('counters', { counters: true });
  await Promise.all([counters.add('n'), counters.add('n', 41), counters.add('big', 2n ** 62n)]);
  assert.equal(await counters.counter('n'), 42n);
  assert.equal(await counters.counter('big'), 2n ** 62n);
  assert.equal(await counters.counter('none'), 0n);
  await counters.put('n', 'text');
  await assert.rejects(counters.counter('n'), code('Invalid', /8 bytes/));
  await assert.rejects(counters.add('n', 1.5), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(counters.add('n', 2n ** 63n), code('Invalid', /64 bits/));
  await assert.rejects(db.tree('t', { counters: true }), code('Invalid'));
});

test('statistics and estimates', async (t) => {
  const db = await database(t);
  const tree = await db.tree('t');
  await Promise.all(Array.from({ length: 100 }, (_, n) => tree.put(`${n}`, 'x')));
  assert.ok(db.stats().commits > 0);
  assert.match(db.prometheus(), /frondb_commits_total/);
  assert.equal(tree.stats().memtable_entries, 100);
  assert.equal((await tree.estimate({ prefix: '1' })).entries, 11);
  assert.equal(db.memory, 32 << 20);
  await db.setMemory(40 << 20);
  assert.equal(db.memory, 40 << 20);
  await assert.rejects(db.setMemory(1), code('Invalid'));
});
