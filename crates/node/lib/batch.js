'use strict';

const { OWNER, checkInternal, hide, nativeOf, shownAs } = require('./internal.js');
const { operand } = require('./counter.js');
const { Tree, boundsOf } = require('./tree.js');
const { Writes } = require('./writes.js');

/** The writes of a batch. */
const WRITES = Symbol('writes');

/** Writes to any number of trees that `db.write` commits together. */
class Batch {
  constructor(token, owner) {
    checkInternal(token, 'batch', 'db.batch()');
    hide(this, { [WRITES]: new Writes(), [OWNER]: owner });
  }

  put(tree, key, value) {
    this[WRITES].put(nativeOf(tree, Tree, 'tree'), key, value);
    return this;
  }

  delete(tree, key) {
    this[WRITES].delete(nativeOf(tree, Tree, 'tree'), key);
    return this;
  }

  deleteRange(tree, range) {
    const native = nativeOf(tree, Tree, 'tree');
    this[WRITES].deleteRange(native, ...boundsOf(native, range));
    return this;
  }

  add(tree, key, number = 1) {
    this[WRITES].add(nativeOf(tree, Tree, 'tree'), key, operand(number));
    return this;
  }

  clear() {
    this[WRITES] = new Writes();
    return this;
  }

  get length() {
    return this[WRITES].length;
  }

  get bytes() {
    return this[WRITES].bytes.length;
  }
}

shownAs(Batch, ({ length, bytes: size }) => ({ length, bytes: size }));

module.exports = { Batch, WRITES };
