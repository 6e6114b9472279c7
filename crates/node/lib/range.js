'use strict';

// Ranges of rows and their iterators. src/rows.rs is the other side.

const { runtime, call } = require('./calls.js');
const { closed, here } = require('./errors.js');

// Parts of a row, as in src/scan.rs.
const KEYS = 0;
const VALUES = 1;
const ENTRIES = 2;

/** Rows that the addon has read and the program has not taken. */
class Chunk {
  #part;
  #keys;
  #keyEnds;
  #values;
  #valueEnds;
  #next = 0;
  #keyStart = 0;
  #valueStart = 0;
  #count;

  constructor(part, [keys, values]) {
    this.#part = part;
    [this.#keys, this.#keyEnds] = keys;
    [this.#values, this.#valueEnds] = values;
    this.#count = Math.max(this.#keyEnds.length, this.#valueEnds.length);
  }

  get isEmpty() {
    return this.#next >= this.#count;
  }

  take() {
    const index = this.#next++;
    if (this.#part === KEYS) return this.#key(index);
    if (this.#part === VALUES) return this.#value(index);
    return [this.#key(index), this.#value(index)];
  }

  #key(index) {
    const start = this.#keyStart;
    return this.#keys.subarray(start, (this.#keyStart = this.#keyEnds[index]));
  }

  #value(index) {
    const start = this.#valueStart;
    return this.#values.subarray(start, (this.#valueStart = this.#valueEnds[index]));
  }
}

/** An iterator for `for await`. It reads the next rows while the program works on these. */
class AsyncRows {
  #owner;
  #open;
  #part;
  #readsAhead;
  #native = undefined;
  #chunk = undefined;
  #isFirst = true;
  #hasEnded = false;
  #ahead = undefined;
  #reading = undefined;

  constructor(owner, part, readsAhead, open) {
    this.#owner = owner;
    this.#part = part;
    this.#readsAhead = readsAhead;
    this.#open = open;
  }

  next() {
    if (this.#reading !== undefined) return this.#reading.then(() => this.next());
    const chunk = this.#chunk;
    if (chunk !== undefined && !chunk.isEmpty) {
      if (this.#owner.isClosing) {
        this.#end();
        return Promise.reject(closed('database'));
      }
      return Promise.resolve({ value: chunk.take(), done: false });
    }
    if (this.#hasEnded) return Promise.resolve({ value: undefined, done: true });
    this.#reading = this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read() {
    try {
      this.#native ??= await this.#open();
      const [keys, values, hasEnded] = await (this.#ahead ?? this.#fill());
      this.#ahead = undefined;
      // `return` may have been called meanwhile.
      this.#hasEnded ||= hasEnded;
      this.#chunk = new Chunk(this.#part, [keys, values]);
      if (!this.#hasEnded && !this.#isFirst && this.#readsAhead) {
        this.#ahead = this.#fill();
        // The error is reported when the program asks for these rows.
        this.#ahead.catch(() => {});
      }
      this.#isFirst = false;
    } catch (error) {
      this.#end();
      throw error;
    }
    if (this.#chunk.isEmpty) return { value: undefined, done: true };
    return { value: this.#chunk.take(), done: false };
  }

  #fill() {
    return call(this.#owner, (ticket) => this.#native.fill(runtime, ticket));
  }

  #end() {
    this.#hasEnded = true;
    this.#chunk = undefined;
    this.#native?.close();
  }

  async return(value) {
    this.#end();
    return { value, done: true };
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    this.#end();
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

/** An iterator for `for`, whose thread reads the rows itself. */
class Rows {
  #owner;
  #native;
  #part;
  #chunk = undefined;
  #hasEnded = false;

  constructor(owner, part, native) {
    this.#owner = owner;
    this.#part = part;
    this.#native = native;
  }

  next() {
    if (this.#chunk === undefined || this.#chunk.isEmpty) {
      if (this.#hasEnded || !this.#fill()) return { value: undefined, done: true };
    }
    this.#owner.check();
    return { value: this.#chunk.take(), done: false };
  }

  #fill() {
    const [[keys, values, hasEnded]] = here(() => this.#native.fillHere());
    this.#hasEnded = hasEnded;
    this.#chunk = new Chunk(this.#part, [keys, values]);
    return !this.#chunk.isEmpty;
  }

  return(value) {
    this.#hasEnded = true;
    this.#chunk = undefined;
    this.#native.close();
    return { value, done: true };
  }

  [Symbol.iterator]() {
    return this;
  }
}

/** A part of the rows of a range. Each iteration begins anew. */
class AsyncRange {
  #make;

  constructor(make) {
    this.#make = make;
  }

  [Symbol.asyncIterator]() {
    return this.#make(false);
  }

  async toArray() {
    const rows = [];
    for await (const row of this) rows.push(row);
    return rows;
  }
}

/** As AsyncRange, for a program that may also wait for the rows. */
class Range extends AsyncRange {
  #make;

  constructor(make) {
    super(make);
    this.#make = make;
  }

  [Symbol.iterator]() {
    return this.#make(true);
  }
}

/** Returns the rows of a tree; `open` makes an iterator of the addon. */
function rangeOf(owner, part, open) {
  return new Range((isHere) => {
    owner.check();
    const native = here(open);
    return isHere
      ? new Rows(owner, part, native)
      : new AsyncRows(owner, part, true, async () => native);
  });
}

/** Returns the rows that a transaction sees. Their iterator does not read ahead: it may lock rows. */
function rangeInTransaction(owner, part, open) {
  return new AsyncRange(() => new AsyncRows(owner, part, false, open));
}

module.exports = { KEYS, VALUES, ENTRIES, AsyncRange, Range, rangeOf, rangeInTransaction };
