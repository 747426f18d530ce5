// Read-only sub-agents. Needs the capability `DELEGATE`.

import { delegate as hostDelegate } from "cofferdam:plugin/agents@0.2.0";

import { callHost } from "./errors.js";

/**
 * Gives a task to a sub-agent and waits for the answer: `text`, `complete` and `turns`. A call can
 * delegate four tasks. If there is no answer, it throws `Failed` with a `code` such as `timed-out`.
 */
export function delegate(task) {
  return callHost(() => hostDelegate(task));
}
