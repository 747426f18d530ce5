// Fast access to many files. Needs the capability `READ_FILES` or `WRITE_FILES`.
//
//     const walk = new Walk({ root: "src", globs: ["*.js"] });
//     for (const { path, data } of walk.files()) console.log(path, data.length);
//     walk.close();

import { openWalk } from "cofferdam:plugin/workspace@0.2.0";

import { callHost } from "./errors.js";

// The number of entries, and the bytes of files, in one call of the host.
const ENTRIES = 1024;
const BATCH_BYTES = 1 << 20;

/** A walk through the workspace in the order of paths. A call can have 16 open walks. */
export class Walk {
  #walk;

  /**
   * `root` is a directory or a file; empty for the whole workspace. `globs` have the syntax of
   * `.gitignore`. If `required` has byte strings, `files` omits files that contain none of * them.
   */
  constructor({
    root = "",
    globs = [],
    hidden = false,
    respectIgnore = true,
    maxDepth,
    required = [],
    requiredIgnoreCase = false,
  } = {}) {
    const options = { root, globs, hidden, respectIgnore, maxDepth, required, requiredIgnoreCase };
    this.#walk = callHost(() => openWalk(options));
  }

  /**
   * Yields the remaining entries: `path`, `kind` (`file`, `directory`, `symlink` or `other`),
   * `size` in bytes, and `modified`, a `Date` or `undefined`.
   */
  *entries() {
    for (;;) {
      const batch = callHost(() => this.#walk.nextEntries(ENTRIES));
      if (batch.length === 0) return;
      for (const { path, kind, size, modified } of batch) {
        const date = modified && new Date(milliseconds(modified));
        yield { path, kind, size: Number(size), modified: date ?? undefined };
      }
    }
  }

  /** Yields the remaining files: `path`, and `data`, the whole content as a `Uint8Array`. */
  *files() {
    let parts = [];
    for (;;) {
      const { pieces, data } = callHost(() => this.#walk.nextFiles(BATCH_BYTES));
      if (pieces.length === 0) return;
      let start = 0;
      for (const { path, length, more } of pieces) {
        parts.push(data.subarray(start, start + length));
        start += length;
        if (!more) {
          yield { path, data: join(parts) };
          parts = [];
        }
      }
    }
  }

  /** Returns a line for each path that could not be read so far, at most 100. */
  problems() {
    return this.#walk.problems();
  }

  /** Ends the walk. */
  close() {
    const walk = this.#walk;
    this.#walk = undefined;
    walk?.[Symbol.dispose ?? Symbol.for("dispose")]?.();
  }
}

function milliseconds({ seconds, nanoseconds }) {
  return Number(seconds) * 1000 + nanoseconds / 1e6;
}

function join(parts) {
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
