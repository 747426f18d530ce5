// Drives `cofferdam mcp serve` with the official TypeScript SDK, over stdio and over HTTP, from the directory that has it:
//
//     cd DIRECTORY_WITH_NODE_MODULES && node drive.mjs PROGRAM
//
// Everything happens in a temporary directory. Ends with exit code 0 if the server behaves as the SDK demands.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const program = path.resolve(process.argv[2]);
const require = createRequire(path.join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = await load(
  "@modelcontextprotocol/sdk/client/streamableHttp.js",
);
const { ElicitRequestSchema, LoggingMessageNotificationSchema } = await load(
  "@modelcontextprotocol/sdk/types.js",
);

const token = "token-for-the-typescript-sdk";

/** A home with a workspace. */
function makeHome() {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "mcpsdk-"));
  const workspace = path.join(home, "workspace");
  fs.mkdirSync(workspace);
  fs.writeFileSync(path.join(workspace, "a.txt"), "one\n");
  return { home, workspace, env: { HOME: home, PATH: process.env.PATH, TOKEN: token } };
}

/** The conversation of one client, whatever the transport. */
async function drive(transport, workspace) {
  const client = new Client(
    { name: "typescript-sdk", version: "1" },
    { capabilities: { elicitation: {} } },
  );
  let questions = 0;
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    questions += 1;
    assert.ok(request.params.message.includes("+two"), request.params.message);
    return { action: "accept", content: { decision: "once" } };
  });
  client.setNotificationHandler(LoggingMessageNotificationSchema, () => {});
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, "cofferdam");
  await client.ping();
  await client.setLoggingLevel("debug");
  const { tools } = await client.listTools();
  assert.equal(tools.find((tool) => tool.name === "grep").annotations.readOnlyHint, true);
  const call = (name, args) => client.callTool({ name, arguments: args });
  assert.ok((await call("read_file", { path: "a.txt" })).content[0].text.includes("one"));
  assert.equal((await call("read_file", { path: "../x" })).isError, true);
  assert.ok(!(await call("write_file", { path: "b.txt", content: "two\n" })).isError);
  assert.equal(questions, 1);
  assert.equal(fs.readFileSync(path.join(workspace, "b.txt"), "utf8"), "two\n");
  const { resources } = await client.listResources();
  assert.deepEqual(resources.map((file) => file.name), ["a.txt", "b.txt"]);
  const { contents } = await client.readResource({ uri: resources[1].uri });
  assert.equal(contents[0].text, "two\n");
  const results = await Promise.all(
    Array.from({ length: 100 }, () => call("read_file", { path: "a.txt" })),
  );
  assert.ok(results.every((result) => result.content[0].text.includes("one")));
  // A call that the client gives up ends.
  const stop = new AbortController();
  const pending = client.callTool(
    { name: "write_file", arguments: { path: "c.txt", content: "three +two" } },
    undefined,
    { signal: stop.signal },
  );
  stop.abort();
  await assert.rejects(pending);
  await client.ping();
  return client;
}

async function driveStdio() {
  const { home, workspace, env } = makeHome();
  try {
    const args = ["mcp", "serve", "-C", workspace];
    const client = await drive(new StdioClientTransport({ command: program, args, env }), workspace);
    await client.close();
    console.log("ok: the TypeScript SDK over stdio");
  } finally {
    fs.rmSync(home, { recursive: true, force: true });
  }
}

async function driveHttp() {
  const { home, workspace, env } = makeHome();
  const args = ["mcp", "serve", "-C", workspace, "--http", "127.0.0.1:0", "--token-env", "TOKEN"];
  const server = spawn(program, args, { env, stdio: ["ignore", "inherit", "pipe"] });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  try {
    const url = await new Promise((resolve, reject) => {
      readline.createInterface({ input: server.stderr }).on("line", (line) => {
        if (line.startsWith("MCP server: ")) resolve(new URL(line.split(" ")[2]));
      });
      server.once("exit", () => reject(new Error("the server ended")));
    });
    await assert.rejects(drive(new StreamableHTTPClientTransport(url), workspace));
    const headers = { Authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
    const client = await drive(transport, workspace);
    await transport.terminateSession();
    await assert.rejects(client.ping());
    await client.close();
    console.log("ok: the TypeScript SDK over HTTP");
  } finally {
    server.kill();
    assert.equal(await ended, 0);
    fs.rmSync(home, { recursive: true, force: true });
  }
}

await driveStdio();
await driveHttp();
