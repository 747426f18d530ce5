// Write Cofferdam plugins in JavaScript. Each tool is an object with a function `call`.
//
//     import { tool } from "./cofferdam.js";
//     export { tools } from "./cofferdam.js";
//
//     tool({
//       name: "shout",
//       description: "Converts a text to uppercase.",
//       properties: { text: { type: "string" } },
//       call: ({ text }) => text.toUpperCase(),
//     });
//
// A tool returns text, a value that becomes JSON, a `Content`, or an `Output`. It throws
// `NotFound`, `InvalidInput`, `Denied`, `TimedOut` or `Failed`; the model sees the message.
//
// The modules `cofferdam/workspace.js`, `state.js`, `commands.js`, `agents.js`, `plans.js` and
// `progress.js` call the host. Each needs a line in `wit/world.wit`, such as
// `import cofferdam:plugin/state@0.2.0;`.

import { Denied, Failed, InvalidInput, NotFound, TimedOut } from "./cofferdam/errors.js";

export * from "./cofferdam/errors.js";
export * from "./cofferdam/files.js";

// --- Capabilities and hints

const named = (name, parameters = []) => ({ name, parameters });

export const READ_FILES = named("read-files");
export const WRITE_FILES = named("write-files");
export const RUN_COMMANDS = named("run-commands");
export const DELEGATE = named("delegate");
export const KEEP_STATE = named("keep-state");
export const PRESENT_PLAN = named("present-plan");
/** The capability to send HTTP requests, such as `fetchFrom("api.example.com", "GET docs.rs")`. */
export const fetchFrom = (...patterns) => named("fetch", patterns);

/** Never run the tool in parallel with another one. */
export const EXCLUSIVE = named("exclusive");
/** Ask the user before every call. */
export const CONFIRM = named("confirm");

// --- Input

/** The schema of a property that is a path in the workspace. The host denies paths outside it. */
export const WORKSPACE_PATH = { type: "string", format: "workspace-path" };

// --- Output

/** A content item of a result. The body is a string for text, and otherwise a `Uint8Array`. */
export class Content {
  constructor(mediaType, body, { uri, annotations = {} } = {}) {
    Object.assign(this, { mediaType, body, uri, annotations });
  }

  static text(text) {
    return new Content("text/plain", text);
  }

  static json(value) {
    return new Content("application/json", JSON.stringify(value ?? null));
  }

  /** PNG, JPEG, GIF or WebP. */
  static image(data, mediaType = "image/png") {
    return new Content(mediaType, data);
  }

  static audio(data, mediaType = "audio/wav") {
    return new Content(mediaType, data);
  }

  /** A copy of a resource, as text or bytes. */
  static resource(uri, body, mediaType = "text/plain") {
    return new Content(mediaType, body, { uri });
  }
}

/** A view, which the user sees instead of the content. */
export const View = {
  text: Content.text,
  /** A unified diff. */
  diff: (diff) => new Content("text/x-diff", diff),
  /** A table, sent as CSV (RFC 4180). Each row has as many cells as the header. */
  table(header, rows) {
    // An empty text is quoted, because a blank line is not a row.
    const cell = (value) => {
      const text = String(value);
      return /^$|[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [header, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`);
    return new Content("text/csv", lines.join(""));
  },
};

/** A result with more than one text or value. */
export class Output {
  /**
   * `content` is text, a `Content`, an array of both, or a value that becomes JSON. `structured` is
   * the value that matches the tool's output schema. The user sees `view`. `truncated` marks an
   * incomplete result.
   */
  constructor(content = [], { structured, view, truncated = false, annotations = {} } = {}) {
    Object.assign(this, { content, structured, view, truncated, annotations });
  }
}

// --- Declaration

const registered = new Map();

/**
 * Declares a tool. `properties` are the properties of the input's JSON Schema. All are required
 * unless `required` lists the required ones. `inputSchema` replaces both with a complete schema.
 */
export function tool({
  name,
  title,
  description,
  properties = {},
  required = Object.keys(properties),
  inputSchema = { type: "object", properties, required, additionalProperties: false },
  outputSchema,
  capabilities = [],
  hints = [],
  annotations,
  call,
}) {
  const declaration = {
    name,
    title,
    description,
    inputSchema: JSON.stringify(inputSchema),
    outputSchema: outputSchema && JSON.stringify(outputSchema),
    capabilities,
    hints,
    annotations: toAnnotations(annotations),
  };
  registered.set(name, { declaration, call });
}

// --- The export

/** The export `cofferdam:plugin/tools`. The main module of a plugin must also export it. */
export const tools = {
  listTools: () => [...registered.values()].map((tool) => tool.declaration),
  callTool(name, input) {
    const tool = registered.get(name);
    if (!tool) throw { tag: "not-found", val: `this plugin has no tool ${name}` };
    try {
      return toOutput(tool, tool.call(JSON.parse(input)));
    } catch (error) {
      throw toToolError(error);
    }
  },
};

function toOutput({ declaration }, result) {
  const isStructured = declaration.outputSchema !== undefined;
  let output = result;
  if (!(result instanceof Output)) {
    output = isStructured ? new Output([], { structured: result }) : new Output(result);
  }
  return {
    content: pieces(output.content).map(toContent),
    structured: isStructured ? JSON.stringify(output.structured ?? null) : undefined,
    view: output.view && toContent(output.view),
    truncated: output.truncated,
    annotations: toAnnotations(output.annotations),
  };
}

/** An array that contains a `Content` is a list of content items. Other arrays are JSON values. */
function pieces(content) {
  if (!Array.isArray(content)) return [content];
  const isList = content.length === 0 || content.some((piece) => piece instanceof Content);
  return isList ? content : [content];
}

function toContent(value) {
  let piece = value;
  if (typeof value === "string") piece = Content.text(value);
  else if (!(value instanceof Content)) piece = Content.json(value);
  const { mediaType, body, uri, annotations } = piece;
  const tag = typeof body === "string" ? "text" : "bytes";
  return { mediaType, body: { tag, val: body }, uri, annotations: toAnnotations(annotations) };
}

function toAnnotations(values = {}) {
  return Object.entries(values).map(([name, value]) => ({ name, value: JSON.stringify(value) }));
}

function toToolError(error) {
  const { message } = error ?? {};
  if (error instanceof NotFound) return { tag: "not-found", val: message };
  if (error instanceof InvalidInput) {
    return { tag: "invalid-input", val: { pointer: error.pointer, message } };
  }
  if (error instanceof Denied) return { tag: "denied", val: error.denial };
  if (error instanceof TimedOut) return { tag: "timed-out", val: message };
  if (error instanceof Failed) return { tag: "failed", val: message };
  const text = `${error?.name ?? "error"}: ${message ?? JSON.stringify(error)}`;
  return { tag: "failed", val: text };
}
