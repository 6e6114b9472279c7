'use strict';

// Long calls on files.

const native = require('./native.js');
const { runtime, nobody, call } = require('./calls.js');
const { wrongType } = require('./errors.js');
const { optionsOf, path } = require('./options.js');
const { report } = require('./tree.js');

/**
 * Makes a call that tells its progress and can be cancelled: the options `progress`, a function
 * that returns false to cancel, and `signal`, an AbortSignal.
 */
async function long(owner, options, start, convert) {
  const { progress, signal } = optionsOf(options);
  if (progress !== undefined && typeof progress !== 'function') {
    throw wrongType('the option progress', 'a function', progress);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw wrongType('the option signal', 'an AbortSignal', signal);
  }
  signal?.throwIfAborted();
  const told = new native.Progress(progress !== undefined);
  const cancel = () => told.cancel();
  let thrown;
  const part = (content) => {
    if (thrown !== undefined) return;
    const { done, total } = report(content);
    try {
      if (progress({ done, total, tree: content[1][0] || undefined }) === false) cancel();
    } catch (error) {
      // The call ends with this error in place of `Cancelled`.
      thrown = { error };
      cancel();
    }
  };
  signal?.addEventListener('abort', cancel);
  try {
    return await call(owner, (ticket) => start(ticket, told), convert, part);
  } catch (error) {
    if (thrown !== undefined) throw thrown.error;
    if (error.code === 'Cancelled') signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}

/** Makes the report of a check: numbers, and faults as texts. */
const withFaults = (content) => ({ ...report(content), faults: content[1] });

function backup({ isIncremental, ...numbers }) {
  return { ...numbers, isIncremental: Boolean(isIncremental) };
}

async function restore(backups, to, options) {
  const all = (Array.isArray(backups) ? backups : [backups]).map((from) => path('a backup', from));
  return long(
    nobody,
    options,
    (ticket, told) => native.restore(runtime, ticket, told, all, path('to', to)),
    report,
  );
}

async function verifyBackup(of, options) {
  return long(
    nobody,
    options,
    (ticket, told) => native.verifyBackup(runtime, ticket, told, path('backup', of)),
    (content) => backup(withFaults(content)),
  );
}

module.exports = { long, withFaults, backup, restore, verifyBackup };
