'use strict';

// Options as the engine reads them: names and texts.

const { wrongType } = require('./errors.js');

/** Options whose numbers are written in octal. */
const MODES = new Set(['file_mode', 'dir_mode']);
/** Options whose numbers are milliseconds. */
const TIMES = new Set(['checkpoint_period', 'sync']);

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function text(name, value) {
  switch (typeof value) {
    case 'string':
      return value;
    case 'boolean':
      return value ? 'on' : 'off';
    case 'bigint':
      return String(value);
    case 'number':
      if (MODES.has(name)) return value.toString(8);
      return TIMES.has(name) ? `${value}ms` : String(value);
    default:
      if (value instanceof URL) return require('node:url').fileURLToPath(value);
      throw wrongType(`the option ${name}`, 'a string, a number, a bigint or a boolean', value);
  }
}

/** Returns the names and texts of all options but those in `others`, sorted by name. */
function settings(options, others) {
  const pairs = Object.entries(options).filter(
    ([name, value]) => !others.includes(name) && value !== undefined,
  );
  const texts = pairs.map(([name, value]) => [snake(name), text(snake(name), value)]);
  return texts.sort(([a], [b]) => (a < b ? -1 : 1)).flat();
}

/** Returns the options of a call; no options are an empty object. */
function optionsOf(options) {
  if (options === undefined || options === null) return {};
  if (typeof options !== 'object') throw wrongType('options', 'an object', options);
  return options;
}

/** Returns the arguments of the addon for the options of a new tree. */
function ofTree(options) {
  const { preset, counters = false } = optionsOf(options);
  return [preset, Boolean(counters), settings(optionsOf(options), ['preset', 'counters'])];
}

/** Returns the durability of a write: true, false, or undefined for that of the database. */
function syncOf(options) {
  const { sync } = optionsOf(options);
  if (sync !== undefined && typeof sync !== 'boolean') {
    throw wrongType('the option sync', 'a boolean', sync);
  }
  return sync;
}

/** Returns an argument that must be a string. */
function string(what, value) {
  if (typeof value !== 'string') throw wrongType(what, 'a string', value);
  return value;
}

/** Returns the path of an argument: a string, or a URL of a file. */
function path(what, value) {
  if (value instanceof URL) return require('node:url').fileURLToPath(value);
  return string(what, value);
}

/** Returns a number of an option that may be missing. */
function number(what, value, missing) {
  if (value === undefined) return missing;
  if (typeof value !== 'number' || !(value >= 0)) {
    throw wrongType(`the option ${what}`, 'a number from 0 on', value);
  }
  return value;
}

module.exports = { settings, optionsOf, ofTree, syncOf, string, path, number };
