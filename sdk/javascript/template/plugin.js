// Counts the lines of a file.

import { READ_FILES, WORKSPACE_PATH, readText, tool } from "./cofferdam.js";
export { tools } from "./cofferdam.js";

tool({
  name: "count_lines",
  title: "Count lines",
  description: "Counts the lines of a text file, or the lines that contain a string.",
  properties: {
    path: { ...WORKSPACE_PATH, description: "The file, relative to the workspace." },
    containing: { type: "string", description: "Count only lines with this string." },
  },
  required: ["path"],
  capabilities: [READ_FILES],
  call({ path, containing = "" }) {
    const lines = readText(path).split("\n");
    if (lines.at(-1) === "") lines.pop();
    return String(lines.filter((line) => line.includes(containing)).length);
  },
});
