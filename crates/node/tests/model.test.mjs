// Random histories of calls, compared with a sorted map. A failure prints the seed of its history:
// FRONDB_SEED=seed runs that one again.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import path from 'node:path';
import { test } from 'node:test';
import { code, directory, open } from './helpers.mjs';

const HISTORIES = process.env.FRONDB_SEED ? 1 : Number(process.env.FRONDB_NODE_HISTORIES ?? 12);
const STEPS = 60;
const OPTIONS = { memory: '16MiB', commitSync: false };

/** Random choices from a seed: xorshift. */
class Random {
  constructor(seed) {
    this.state = seed >>> 0 || 1;
  }

  below(count) {
    this.state ^= this.state << 13;
    this.state ^= this.state >>> 17;
    this.state ^= this.state << 5;
    this.state >>>= 0;
    return this.state % count;
  }

  of(choices) {
    return choices[this.below(choices.length)];
  }

  times(most, make) {
    return Array.from({ length: this.below(most + 1) }, make);
  }
}

// Few different keys, so that calls meet the same ones; prefixes of each other and bytes at the ends.
const EDGES = ['', '\xff', '\xff\xff', 'a', 'ab', 'abc', 'b'];
const keyOf = (random) => {
  if (random.below(2) === 0) return Buffer.from(random.of(EDGES), 'latin1');
  return Buffer.from(random.times(2, () => random.below(256)));
};
const valueOf = (random) =>
  random.below(8) === 0 ? Buffer.alloc(random.below(70_000), 'v') : Buffer.from(`${random.below(1000)}`);

/** A sorted map: latin1 texts have the order of their bytes. */
class Model {
  constructor(rows = []) {
    this.rows = new Map(rows);
  }

  copy() {
    return new Model(this.rows);
  }

  get(key) {
    return this.rows.get(key.toString('latin1')) ?? null;
  }

  put(key, value) {
    this.rows.set(key.toString('latin1'), value);
  }

  delete(key) {
    this.rows.delete(key.toString('latin1'));
  }

  /** Returns the rows of a range, sorted. */
  entries({ gt, gte, lt, lte, prefix, reverse = false, limit = Infinity } = {}) {
    const text = (bound) => bound?.toString('latin1');
    const isIn = ([key]) =>
      !(key <= text(gt)) && !(key < text(gte)) && !(key >= text(lt)) && !(key > text(lte)) &&
      key.startsWith(text(prefix) ?? '');
    const rows = [...this.rows].filter(isIn).sort(([a], [b]) => (a < b ? -1 : 1));
    return (reverse ? rows.reverse() : rows).slice(0, limit);
  }
}

const plain = (rows) => rows.map(([key, value]) => [key.toString('latin1'), value]);
/** Compares rows; `assert` alone takes a second for each large buffer that differs. */
function same(rows, wanted) {
  const shown = ([key, value]) => [key, value.length, value.subarray(0, 8).toString('latin1')];
  const got = plain(rows);
  assert.deepEqual(got.map(shown), wanted.map(shown));
  assert.ok(got.every(([, value], at) => value.equals(wanted[at][1])));
}
const sameValue = (value, wanted) => assert.equal(value?.toString('latin1'), wanted?.toString('latin1'));

function rangeOf(random) {
  const range = {};
  for (const bound of ['gt', 'gte', 'lt', 'lte', 'prefix']) {
    if (random.below(4) === 0) range[bound] = keyOf(random);
  }
  return range;
}

/** One tree, snapshots of it, and iterators over it. */
class History {
  model = new Model();
  snapshots = [];
  iterators = [];

  constructor(random, at) {
    Object.assign(this, { random, at });
  }

  async open() {
    this.db = await open(this.at, OPTIONS);
    this.tree = await this.db.tree('t');
  }

  // --- Steps ---

  async put() {
    const [key, value] = [keyOf(this.random), valueOf(this.random)];
    if (this.random.below(2) === 0) await this.tree.put(key, value);
    else this.tree.putSync(key, value);
    this.model.put(key, value);
  }

  async delete() {
    const key = keyOf(this.random);
    if (this.random.below(2) === 0) await this.tree.delete(key);
    else this.tree.deleteSync(key);
    this.model.delete(key);
  }

  async replace() {
    const [key, value] = [keyOf(this.random), valueOf(this.random)];
    sameValue(await this.tree.replace(key, value), this.model.get(key));
    this.model.put(key, value);
    const other = keyOf(this.random);
    sameValue(await this.tree.take(other), this.model.get(other));
    this.model.delete(other);
  }

  async deleteRange() {
    const range = rangeOf(this.random);
    if (Object.keys(range).length === 0) return;
    await this.tree.deleteRange(range);
    for (const [key] of this.model.entries(range)) this.model.rows.delete(key);
  }

  /** Writes that are not awaited one by one. */
  async together() {
    const writes = this.random.times(20, () => {
      const [key, value] = [keyOf(this.random), valueOf(this.random)];
      if (this.random.below(3) === 0) {
        this.model.delete(key);
        return this.tree.delete(key);
      }
      this.model.put(key, value);
      return this.tree.put(key, value);
    });
    await Promise.all(writes);
  }

  async batch() {
    const batch = this.db.batch();
    this.random.times(10, () => {
      const [key, value] = [keyOf(this.random), valueOf(this.random)];
      if (this.random.below(3) === 0) {
        batch.delete(this.tree, key);
        this.model.delete(key);
      } else {
        batch.put(this.tree, key, value);
        this.model.put(key, value);
      }
    });
    if (this.random.below(2) === 0) await this.db.write(batch);
    else this.db.writeSync(batch);
  }

  async transaction() {
    const { random, tree } = this;
    const after = this.model.copy();
    const fails = random.below(2) === 0;
    const wanted = new Error('wanted');
    const run = this.db.transaction(async (tx) => {
      for (const [key, value] of random.times(5, () => [keyOf(random), valueOf(random)])) {
        sameValue(await tx.replace(tree, key, value), after.get(key));
        after.put(key, value);
      }
      const savepoint = await tx.savepoint();
      for (const key of random.times(3, () => keyOf(random))) await tx.put(tree, key, 'undone');
      await savepoint.rollback();
      for (const key of random.times(3, () => keyOf(random))) {
        sameValue(await tx.take(tree, key), after.get(key));
        after.delete(key);
      }
      const range = { ...rangeOf(random), reverse: random.below(2) === 0 };
      same(await tx.entries(tree, range).toArray(), after.entries(range));
      if (fails) throw wanted;
    });
    if (fails) return assert.rejects(run, (error) => error === wanted);
    await run;
    this.model = after;
    return undefined;
  }

  async bulkLoad() {
    const rows = this.random.times(20, () => [keyOf(this.random), valueOf(this.random)]);
    const load = await this.db.bulkLoad();
    await load.putMany(this.tree, rows);
    await load.finish();
    for (const [key, value] of rows) this.model.put(key, value);
  }

  snapshot() {
    this.snapshots.push({ db: this.db, snapshot: this.db.snapshot(), model: this.model.copy() });
  }

  async readAt() {
    if (this.snapshots.length === 0) return;
    const { db, snapshot, model } = this.random.of(this.snapshots);
    const range = { ...rangeOf(this.random), reverse: this.random.below(2) === 0, limit: this.random.below(20) };
    const at = this.tree.entries({ ...range, snapshot });
    if (db !== this.db) {
      await assert.rejects(at.toArray());
      return;
    }
    same(await at.toArray(), model.entries(range));
    same([...at], model.entries(range));
  }

  closeSnapshot() {
    this.snapshots.pop()?.snapshot.close();
  }

  iterate() {
    const rows = this.tree.entries()[Symbol.asyncIterator]();
    this.iterators.push({ db: this.db, rows, wanted: this.model.entries(), hasEnded: false });
  }

  async step() {
    if (this.iterators.length === 0) return;
    const iterator = this.random.of(this.iterators);
    const { db, rows, wanted } = iterator;
    if (db !== this.db) {
      // An iterator ends with its first error. One whose rows were all taken may know that already.
      const isWhole = wanted.length === 0;
      if (!iterator.hasEnded && !isWhole) await assert.rejects(rows.next(), code('Closed'));
      else if (iterator.hasEnded) assert.equal((await rows.next()).done, true);
      iterator.hasEnded ||= !isWhole;
      return;
    }
    for (let left = this.random.below(20); left > 0; left--) {
      const { value, done } = await rows.next();
      assert.equal(done, wanted.length === 0);
      if (done) {
        iterator.hasEnded = true;
        break;
      }
      same([value], [wanted.shift()]);
    }
  }

  async leave() {
    await this.iterators.pop()?.rows.return();
  }

  flush() {
    return this.db.flush();
  }

  async reopen() {
    await this.db.close();
    await this.open();
  }

  // --- Checks ---

  async check() {
    const range = { ...rangeOf(this.random), reverse: this.random.below(2) === 0 };
    same(await this.tree.entries(range).toArray(), this.model.entries(range));
    const all = this.model.entries();
    same([...this.tree.entries()], all);
    const keys = all.map(([key]) => Buffer.from(key, 'latin1'));
    (await this.tree.multiGet(keys)).forEach((value, at) => sameValue(value, all[at][1]));
    const key = keyOf(this.random);
    const wanted = this.model.get(key);
    const [later, here] = [await this.tree.get(key), this.tree.getSync(key)];
    sameValue(later, wanted);
    sameValue(here, wanted);
    assert.equal(this.tree.existsSync(key), wanted !== null);
  }
}

const KINDS = [
  'put', 'put', 'delete', 'replace', 'deleteRange', 'together', 'together', 'batch', 'transaction', 'bulkLoad',
  'snapshot', 'readAt', 'readAt', 'closeSnapshot', 'iterate', 'step', 'step', 'step', 'leave', 'flush', 'reopen',
];

for (let number = 0; number < HISTORIES; number++) {
  const seed = Number(process.env.FRONDB_SEED) || randomInt(1, 2 ** 32);
  test(`a random history agrees with a sorted map: FRONDB_SEED=${seed}`, async () => {
    const random = new Random(seed);
    const history = new History(random, path.join(directory(), 'db'));
    await history.open();
    try {
      for (let step = 0; step < STEPS; step++) {
        const kind = random.of(KINDS);
        try {
          await history[kind]();
          await history.check();
        } catch (error) {
          error.message += ` (step ${step}, ${kind}, FRONDB_SEED=${seed})`;
          throw error;
        }
      }
    } finally {
      await history.db.close();
    }
  });
}
