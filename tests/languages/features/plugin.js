// Uses every part of the SDK.

import {
  CONFIRM,
  Content,
  DELEGATE,
  EXCLUSIVE,
  Failed,
  InvalidInput,
  KEEP_STATE,
  NotFound,
  Output,
  PRESENT_PLAN,
  READ_FILES,
  RUN_COMMANDS,
  TimedOut,
  View,
  tool,
} from "./cofferdam.js";
import { delegate } from "./cofferdam/agents.js";
import { decodeText } from "./cofferdam/bytes.js";
import { run } from "./cofferdam/commands.js";
import { present } from "./cofferdam/plans.js";
import { report } from "./cofferdam/progress.js";
import * as state from "./cofferdam/state.js";
import { Walk } from "./cofferdam/workspace.js";
export { tools } from "./cofferdam.js";

const TEXT = { type: "string" };

tool({
  name: "report",
  title: "Report",
  description: "Returns every kind of content.",
  properties: { name: TEXT },
  outputSchema: {
    type: "object",
    properties: { name: TEXT, count: { type: "integer" } },
    required: ["name", "count"],
  },
  annotations: { "x-kind": "report" },
  call({ name }) {
    const content = [
      "hello",
      Content.json(null),
      Content.image(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])),
      Content.audio(new Uint8Array([0, 255])),
      Content.resource("file:///a.txt", "copy"),
    ];
    const rows = [[name, 'a "quoted", cell\nof two lines'], ["", ""]];
    const view = View.table(["name", "note"], rows);
    return new Output(content, { structured: { name, count: 1 }, view, truncated: true });
  },
});

tool({
  name: "count_calls",
  description: "Counts its calls.",
  capabilities: [KEEP_STATE],
  call() {
    const calls = Number(state.getText("calls") ?? "0") + 1;
    state.setText("calls", String(calls));
    state.setBytes("raw", new Uint8Array([0, 255]));
    state.deleteKey("old");
    if (state.keys().join() !== "calls,raw" || state.getBytes("raw")[1] !== 255) {
      throw new Failed(`the keys are ${state.keys()}`);
    }
    return String(calls);
  },
});

tool({
  name: "list_files",
  description: "Lists and reads text files.",
  capabilities: [READ_FILES],
  call() {
    report("walking");
    for (let i = 0; i < 20; i++) {
      const walk = new Walk();
      walk.entries().next();
      walk.close();
    }
    const lines = [];
    let walk = new Walk({ globs: ["*.txt"] });
    for (const { path, kind, size, modified } of walk.entries()) {
      if (kind === "file") lines.push(`${path} ${size} ${modified ? "dated" : "undated"}`);
    }
    walk.close();
    walk = new Walk({ globs: ["*.txt"] });
    for (const { path, data } of walk.files()) lines.push(`${path}=${decodeText(data)}`);
    lines.push(...walk.problems());
    walk.close();
    return `${lines.join("\n")}\n`;
  },
});

tool({
  name: "run_command",
  description: "Runs a command.",
  capabilities: [RUN_COMMANDS],
  hints: [EXCLUSIVE, CONFIRM],
  call() {
    const output = run("echo out; echo err >&2; exit 3", { timeout: 5000 });
    const timed = output.elapsed > 0 && output.elapsed < 5000;
    return `${output.exitCode} ${output.stdout.trim()} ${output.stderr.trim()} ${timed}`;
  },
});

tool({
  name: "ask_agent",
  description: "Asks a sub-agent.",
  capabilities: [DELEGATE],
  call: () => delegate("How many files are there?").text,
});

tool({
  name: "make_plan",
  description: "Presents a plan.",
  capabilities: [PRESENT_PLAN],
  call: () => present("1. Nothing"),
});

tool({
  name: "fail",
  description: "Fails.",
  properties: { error: TEXT },
  call({ error }) {
    if (error === "not-found") throw new NotFound("nothing is here");
    if (error === "timed-out") throw new TimedOut("it took too long");
    if (error === "failed") throw new Failed("it failed");
    throw new InvalidInput("/error", "there is no such error");
  },
});
