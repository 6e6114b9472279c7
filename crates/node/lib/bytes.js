'use strict';

// Byte strings: arguments, and the arrays of many in which the addon takes and returns them.

const { wrongType, invalid } = require('./errors.js');

/** The end of a string that is absent, as in src/columns.rs. */
const ABSENT = 0xffffffff;

const WANTED = 'a Buffer, a Uint8Array or a string';

/** Returns the bytes of an argument; of a string, its UTF-8. */
function bytes(value, what) {
  if (value instanceof Uint8Array) return value;
  if (typeof value === 'string') return Buffer.from(value);
  throw wrongType(what, WANTED, value);
}

/** As `bytes`, but undefined stays undefined. */
function bytesIfGiven(value, what) {
  return value === undefined ? undefined : bytes(value, what);
}

/** Bytes that grow at their end. */
class Arena {
  #bytes = Buffer.allocUnsafeSlow(256);
  length = 0;

  /** Appends the bytes of an argument, and returns where they end. */
  append(value, what) {
    if (typeof value === 'string') {
      // One unit of UTF-16 takes up to three bytes.
      this.#reserve(value.length * 3);
      this.length += this.#bytes.utf8Write(value, this.length);
    } else if (value instanceof Uint8Array) {
      this.#reserve(value.length);
      this.#bytes.set(value, this.length);
      this.length += value.length;
    } else {
      throw wrongType(what, WANTED, value);
    }
    return this.length;
  }

  #reserve(more) {
    const needed = this.length + more;
    if (needed <= this.#bytes.length) return;
    if (needed >= ABSENT) throw invalid('the keys and values of one call exceed 4 GiB: divide it');
    const size = Math.min(Math.max(needed, this.#bytes.length * 2), ABSENT);
    const bytes = Buffer.allocUnsafeSlow(size);
    bytes.set(this.#bytes.subarray(0, this.length));
    this.#bytes = bytes;
  }

  /** Returns the bytes so far, which the next append may overwrite. */
  bytes() {
    return this.#bytes.subarray(0, this.length);
  }
}

/** Returns a copy, so that a value that a program keeps does not keep others in memory. */
function copy(from, start, end) {
  const to = Buffer.allocUnsafe(end - start);
  from.copy(to, 0, start, end);
  return to;
}

/** Calls `each` with each string of a column of the addon, and null for an absent one. */
function forEach([from, ends], each) {
  let start = 0;
  for (let index = 0; index < ends.length; index++) {
    const end = ends[index];
    if (end === ABSENT) {
      each(null, index);
      continue;
    }
    each(copy(from, start, end), index);
    start = end;
  }
}

/** Returns the strings of a column of the addon. */
function strings(column) {
  const all = [];
  forEach(column, (value) => all.push(value));
  return all;
}

/** Makes the arguments `bytes, ends` of keys. */
function columnOf(keys, what) {
  const arena = new Arena();
  const ends = [];
  for (const key of keys) ends.push(arena.append(key, what));
  return [arena.bytes(), new Uint32Array(ends)];
}

module.exports = { bytes, bytesIfGiven, Arena, forEach, strings, columnOf };
