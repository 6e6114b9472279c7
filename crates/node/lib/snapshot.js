'use strict';

const { NATIVE, checkInternal, hide, shownAs } = require('./internal.js');
const { wrongType } = require('./errors.js');

/** A moment of the whole database, at which reads can see it. */
class Snapshot {
  constructor(token, native) {
    checkInternal(token, 'snapshot', 'db.snapshot()');
    hide(this, { [NATIVE]: native });
  }

  get closed() {
    return this[NATIVE].closed;
  }

  close() {
    this[NATIVE].close();
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.close();
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    this.close();
  }
}

shownAs(Snapshot, ({ closed }) => ({ closed }));

/** Returns the snapshot of options as the addon takes it. */
function snapshotOf(snapshot) {
  if (snapshot === undefined) return undefined;
  if (snapshot instanceof Snapshot) return snapshot[NATIVE];
  throw wrongType('the option snapshot', 'a Snapshot', snapshot);
}

module.exports = { Snapshot, snapshotOf };
