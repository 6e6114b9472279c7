'use strict';

const { wrongType, invalid } = require('./errors.js');

/** Returns the operand of a counter: a number of 8 bytes, little-endian, as in src/counter.rs. */
function operand(number) {
  const isWhole = typeof number === 'bigint' || Number.isSafeInteger(number);
  if (!isWhole) throw wrongType('number', 'a bigint or a safe integer', number);
  const value = BigInt(number);
  if (BigInt.asIntN(64, value) !== value) throw invalid(`${value} does not fit in 64 bits`);
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}

module.exports = { operand };
