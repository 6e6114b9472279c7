'use strict';

// What the classes of this package know of each other, and users do not see.

const util = require('node:util');
const { wrongType } = require('./errors.js');

/** The object of the addon behind an object. */
const NATIVE = Symbol('native');
/** The calls of its database. */
const OWNER = Symbol('owner');
/** Passed to constructors, which only this package calls. */
const INTERNAL = Symbol('internal');

/** Stops a program that calls a constructor. */
function checkInternal(token, name, maker) {
  if (token !== INTERNAL) throw new TypeError(`a ${name} is made by ${maker}, not by new`);
}

/** Sets properties that no loop and no console shows. */
function hide(object, properties) {
  for (const [key, value] of Object.entries(properties)) {
    Object.defineProperty(object, key, { value });
  }
  for (const key of Object.getOwnPropertySymbols(properties)) {
    Object.defineProperty(object, key, { value: properties[key], writable: true });
  }
}

/** Returns the object of the addon behind an argument, which must be of the class. */
function nativeOf(value, classOf, what) {
  if (value instanceof classOf) return value[NATIVE];
  throw wrongType(what, `a ${classOf.name}`, value);
}

/** Makes `console.log` show an object with these properties. */
function shownAs(classOf, properties) {
  Object.defineProperty(classOf.prototype, util.inspect.custom, {
    value(depth, options) {
      return `${classOf.name} ${util.inspect(properties(this), options)}`;
    },
  });
}

module.exports = { NATIVE, OWNER, INTERNAL, checkInternal, hide, nativeOf, shownAs };
