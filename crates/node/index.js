'use strict';

// FronDB for Node.js. index.d.ts documents everything that is exported here.

const { Db, open } = require('./lib/database.js');
const { Batch } = require('./lib/batch.js');
const { BulkLoad } = require('./lib/bulk.js');
const { FrondbError } = require('./lib/errors.js');
const { restore, verifyBackup } = require('./lib/files.js');
const { AsyncRange, Range } = require('./lib/range.js');
const { Snapshot } = require('./lib/snapshot.js');
const { Savepoint, Transaction } = require('./lib/transaction.js');
const { Tree } = require('./lib/tree.js');

module.exports = {
  open,
  restore,
  verifyBackup,
  FrondbError,
  Db,
  Tree,
  AsyncRange,
  Range,
  Batch,
  Transaction,
  Savepoint,
  Snapshot,
  BulkLoad,
};
