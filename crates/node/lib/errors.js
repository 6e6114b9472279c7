'use strict';

const SEPARATOR = '\x1f';

/** The error of a call of FronDB; `code` says what to do. index.d.ts describes the codes. */
class FrondbError extends Error {
  constructor(code, message, { file, offset, what, errno, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    if (file !== undefined) Object.assign(this, { file, offset, what });
    if (errno !== undefined) this.errno = errno;
  }
}
Object.defineProperty(FrondbError.prototype, 'name', {
  value: 'FrondbError',
  writable: true,
  configurable: true,
});

/** Makes an error of the text of src/failure.rs. */
function fromText(text) {
  const [code, message, file, offset, what, errno] = text.split(SEPARATOR);
  const details = {};
  if (file) Object.assign(details, { file, offset: Number(offset), what });
  if (errno) details.errno = Number(errno);
  const place = file ? ` (${what} at offset ${offset} of ${file})` : '';
  return new FrondbError(code, message + place, details);
}

/** Makes a FrondbError of an error that the addon has thrown; other errors stay as they are. */
function fromThrown(error) {
  if (error?.code !== 'FRONDB') return error;
  const made = fromText(error.message);
  Error.captureStackTrace?.(made, fromThrown);
  return made;
}

/** Calls a synchronous function of the addon. */
function here(call) {
  try {
    return call();
  } catch (error) {
    throw fromThrown(error);
  }
}

const closed = (what) => new FrondbError('Closed', `the ${what} was closed`);

const invalid = (message) => new FrondbError('Invalid', message);

/** Says what a value is, for messages. */
function kindOf(value) {
  if (value === null || value === undefined) return String(value);
  const name = typeof value === 'object' ? value.constructor?.name : undefined;
  return name ? `an instance of ${name}` : `a ${typeof value}`;
}

/** Makes the error of an argument of a wrong type. */
function wrongType(what, wanted, value) {
  const error = new TypeError(`${what} is ${kindOf(value)}; it must be ${wanted}`);
  error.code = 'ERR_INVALID_ARG_TYPE';
  return error;
}

module.exports = { FrondbError, fromText, fromThrown, here, closed, invalid, wrongType };
