// Per-session key-value storage for one tool. Needs the capability `KEEP_STATE`.
//
// A key is 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `.`, `_`, `/` and `-`. A value has at most
// 64 KiB. A tool has at most 256 keys and 256 KiB in total.

import * as host from "cofferdam:plugin/state@0.2.0";

import { decodeText, encodeText } from "./bytes.js";
import { Failed, callHost } from "./errors.js";

/** Returns the value of a key as a `Uint8Array`, or `undefined` if there is none. */
export function getBytes(key) {
  return callHost(() => host.get(key)) ?? undefined;
}

/** Returns the value of a key as text, or `undefined` if there is none. */
export function getText(key) {
  const bytes = getBytes(key);
  if (bytes === undefined) return undefined;
  const text = decodeText(bytes);
  if (text === undefined) throw new Failed(`the value of ${key} is not text`);
  return text;
}

/** Sets the value of a key to a `Uint8Array`. */
export function setBytes(key, value) {
  callHost(() => host.set(key, value));
}

/** Sets the value of a key to text. */
export function setText(key, text) {
  setBytes(key, encodeText(text));
}

/** Deletes a key. Deleting a key that does not exist is not an error. */
export function deleteKey(key) {
  callHost(() => host.delete(key));
}

/** Returns all keys in order. */
export function keys() {
  return callHost(() => host.keys());
}
