'use strict';

// Ranges of keys as arguments.

const { bytesIfGiven } = require('./bytes.js');
const { optionsOf } = require('./options.js');
const { invalid } = require('./errors.js');

const ZERO = Buffer.alloc(1);

/** Returns the smallest key above a key. */
const after = (key) => Buffer.concat([key, ZERO]);

/** Returns the larger of two bounds, of which each may be missing. */
function larger(a, b) {
  if (a === undefined || b === undefined) return a ?? b;
  return Buffer.compare(a, b) > 0 ? a : b;
}

function smaller(a, b) {
  if (a === undefined || b === undefined) return a ?? b;
  return Buffer.compare(a, b) < 0 ? a : b;
}

/** Returns the arguments of the addon for a range: lower bound, upper bound, prefix. */
function keysOf(range) {
  const { gt, gte, lt, lte, prefix } = optionsOf(range);
  const above = bytesIfGiven(gt, 'gt');
  const below = bytesIfGiven(lte, 'lte');
  return [
    larger(bytesIfGiven(gte, 'gte'), above && after(above)),
    smaller(bytesIfGiven(lt, 'lt'), below && after(below)),
    bytesIfGiven(prefix, 'prefix'),
  ];
}

/** As `keysOf`, but a range without a bound is an error: it is more likely a mistake. */
function keysToDelete(range) {
  const keys = keysOf(range);
  if (keys.every((bound) => bound === undefined)) {
    throw invalid('deleteRange needs gt, gte, lt, lte or prefix; clear() deletes all rows');
  }
  return keys;
}

module.exports = { keysOf, keysToDelete };
