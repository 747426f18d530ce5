// What a Cofferdam plugin in JavaScript is made of: a function a tool, handed to `tool`.
//
//     import { tool } from "./cofferdam.js";
//     export { tools } from "./cofferdam.js";
//
//     tool({
//       name: "shout",
//       description: "Returns a text in capitals.",
//       properties: { text: { type: "string" } },
//       call: ({ text }) => text.toUpperCase(),
//     });
//
// A tool returns text, or anything that becomes JSON, or an `Output` to say more. What it throws becomes an error that the
// model reads: `NotFound`, `InvalidInput`, `Failed`, or whatever the file functions below throw.

import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

export const READ_FILES = { tag: "read-files" };
export const WRITE_FILES = { tag: "write-files" };

/** A property that is a path in the workspace. The host refuses paths that leave it, and shows and orders calls by them. */
export const WORKSPACE_PATH = { type: "string", format: "workspace-path" };

/** What the call is about does not exist. */
export class NotFound extends Error {}
/** The tool could not do what was asked; say what the model can do about it. */
export class Failed extends Error {}
/** The input fits the schema and still makes no sense. `pointer` is a JSON pointer into it. */
export class InvalidInput extends Error {
  constructor(pointer, message) {
    super(message);
    this.pointer = pointer;
  }
}

/** What a tool answers, when text alone does not say it. `view` is what the user sees instead. */
export class Output {
  constructor(content, { view, truncated = false } = {}) {
    Object.assign(this, { content, view, truncated });
  }
}

const registered = new Map();

/** Makes a function a tool. All properties are required unless `required` says else. */
export function tool({ name, description, properties, required, capabilities = [], confirm = false, exclusive = false, call }) {
  const inputSchema = JSON.stringify({
    type: "object",
    properties,
    required: required ?? Object.keys(properties),
    additionalProperties: false,
  });
  registered.set(name, { declared: { name, description, inputSchema, capabilities, hints: { confirm, exclusive } }, call });
}

/** The export `cofferdam:plugin/tools`: a plugin's main module exports it on. */
export const tools = {
  listTools: () => [...registered.values()].map((tool) => tool.declared),
  callTool(name, input) {
    const tool = registered.get(name);
    if (!tool) throw { tag: "not-found", val: `this plugin has no tool ${name}` };
    try {
      return output(tool.call(JSON.parse(input)));
    } catch (error) {
      throw problem(error);
    }
  },
};

function output(answer) {
  const { content, view, truncated } = answer instanceof Output ? answer : new Output(answer);
  const piece = typeof content === "string" ? { tag: "text", val: content } : { tag: "json", val: JSON.stringify(content) };
  return { content: [piece], view: typeof view === "string" ? { tag: "text", val: view } : view, truncated };
}

function problem(error) {
  if (error instanceof NotFound) return { tag: "not-found", val: error.message };
  if (error instanceof InvalidInput) return { tag: "invalid-input", val: { pointer: error.pointer, message: error.message } };
  if (error instanceof Failed) return { tag: "failed", val: error.message };
  return { tag: "failed", val: `${error?.name ?? "error"}: ${error?.message ?? JSON.stringify(error)}` };
}

/** Reads a file of the workspace as text. */
export function readText(path) {
  // Each byte as a character, and those decoded: engines without TextDecoder have this, in native code.
  let bytes = "";
  read(path, (chunk) => {
    for (let at = 0; at < chunk.length; at += ARGUMENTS) bytes += String.fromCharCode.apply(null, chunk.subarray(at, at + ARGUMENTS));
  });
  try {
    return decodeURIComponent(escape(bytes));
  } catch {
    throw new Failed(`${path} is not text`);
  }
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

/** Writes a file of the workspace, new or in place of what was there. Needs `WRITE_FILES`. */
export function writeText(path, text) {
  const bytes = Uint8Array.from(unescape(encodeURIComponent(text)), (char) => char.charCodeAt(0));
  attempt(path, "written", () => {
    const file = workspace().openAt({ symlinkFollow: true }, path, { create: true, truncate: true }, { write: true });
    for (let at = 0; at < bytes.length; ) {
      at += Number(file.write(bytes.subarray(at, at + PIECE), integer(at, file)));
    }
  });
}

/** The names in a directory of the workspace, in order; empty for its root. */
export function listDirectory(path) {
  return attempt(path, "listed", () => {
    const root = workspace();
    const stream = (path === "" ? root : root.openAt({ symlinkFollow: true }, path, { directory: true }, { read: true })).readDirectory();
    const names = [];
    for (let entry = stream.readDirectoryEntry(); entry; entry = stream.readDirectoryEntry()) names.push(entry.name);
    return names.sort();
  });
}

// The host hands over at most 64 KiB at once; an engine takes only so many arguments.
const PIECE = 65536;
const ARGUMENTS = 8192;

function read(path, each) {
  attempt(path, "read", () => {
    const file = workspace().openAt({ symlinkFollow: true }, path, {}, { read: true });
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
  if (!opened) throw new Failed("this tool may not read files; it would have to ask for `read-files`");
  return opened[0];
}

// WASI's sizes are BigInt in one engine and Number in another, and each takes nothing but its own.
let big;
function integer(value, file) {
  big ??= typeof file.stat().size === "bigint";
  return big ? BigInt(value) : value;
}

const WORDS = {
  "no-entry": "does not exist",
  "not-permitted": "leads out of the workspace, or may not be touched",
  access: "may not be touched",
  "read-only": "may not be changed; the tool would have to ask for `write-files`",
  "is-directory": "is a directory",
  "not-directory": "is not a directory",
};

function attempt(path, done, action) {
  try {
    return action();
  } catch (error) {
    const code = typeof error === "string" ? error : error?.payload;
    if (typeof code !== "string") throw error;
    const message = `${path} ${WORDS[code] ?? `cannot be ${done}: ${code}`}`;
    throw code === "no-entry" ? new NotFound(message) : new Failed(message);
  }
}
