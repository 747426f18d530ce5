// Files of the workspace. For many files, use `workspace.js`.

import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

import { decodeText, encodeText } from "./bytes.js";
import { Failed, NotFound } from "./errors.js";

/** Reads a file of the workspace as text. */
export function readText(path) {
  const chunks = [];
  read(path, (chunk) => chunks.push(chunk));
  const text = decodeText(...chunks);
  if (text === undefined) throw new Failed(`${path} is not text`);
  return text;
}

/** Reads a file of the workspace. */
export function readBytes(path) {
  const chunks = [];
  let length = 0;
  read(path, (chunk) => {
    chunks.push(chunk);
    length += chunk.length;
  });
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** Creates or replaces a file of the workspace. Needs `WRITE_FILES`. */
export function writeText(path, text) {
  writeBytes(path, encodeText(text));
}

/** Creates or replaces a file of the workspace. Needs `WRITE_FILES`. */
export function writeBytes(path, bytes) {
  attempt(path, "written", () => {
    const flags = { create: true, truncate: true };
    const file = workspace().openAt(FOLLOW, path, flags, { write: true });
    for (let at = 0; at < bytes.length; ) {
      at += Number(file.write(bytes.subarray(at, at + PIECE), integer(at, file)));
    }
  });
}

/** Returns the names in a directory of the workspace, in order; empty for its root. */
export function listDirectory(path) {
  return attempt(path, "listed", () => {
    const root = workspace();
    const open = () => root.openAt(FOLLOW, path, { directory: true }, { read: true });
    const stream = (path === "" ? root : open()).readDirectory();
    const names = [];
    const next = () => stream.readDirectoryEntry();
    for (let entry = next(); entry; entry = next()) names.push(entry.name);
    return names.sort();
  });
}

const FOLLOW = { symlinkFollow: true };
// The number of bytes that the host reads or writes in one call.
const PIECE = 65536;

function read(path, each) {
  attempt(path, "read", () => {
    const file = workspace().openAt(FOLLOW, path, {}, { read: true });
    if (file.getType() === "directory") throw new Failed(`${path} is a directory`);
    for (let at = 0, end = false; !end; ) {
      const [chunk, last] = file.read(integer(PIECE, file), integer(at, file));
      if (chunk.length > 0) each(chunk);
      at += chunk.length;
      end = last || chunk.length === 0;
    }
  });
}

let opened;
function workspace() {
  opened ??= getDirectories()[0];
  if (!opened) throw new Failed("this tool cannot read files: it lacks `read-files`");
  return opened[0];
}

// A u64 is a Number in QuickJS and a BigInt in other engines.
let big;
function integer(value, file) {
  big ??= typeof file.stat().size === "bigint";
  return big ? BigInt(value) : value;
}

const REASONS = {
  "no-entry": "does not exist",
  "not-permitted": "is outside the workspace or not accessible",
  access: "is not accessible",
  "read-only": "is read-only: the tool lacks `write-files`",
  "is-directory": "is a directory",
  "not-directory": "is not a directory",
};

function attempt(path, done, action) {
  try {
    return action();
  } catch (error) {
    const code = typeof error === "string" ? error : error?.payload;
    if (typeof code !== "string") throw error;
    const message = `${path} ${REASONS[code] ?? `cannot be ${done}: ${code}`}`;
    throw code === "no-entry" ? new NotFound(message) : new Failed(message);
  }
}
