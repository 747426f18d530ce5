// Running commands on the user's machine. Needs the capability `RUN_COMMANDS`.

import { run as hostRun } from "cofferdam:plugin/commands@0.2.0";
import { now } from "wasi:clocks/monotonic-clock@0.2.12";

import { callHost } from "./errors.js";

const NANOSECONDS = 1e6;

/**
 * Runs a command line with `sh -c` and waits until it exits. The line needs approval, by the user
 * or by a rule.
 *
 * `directory` is a directory of the workspace. `timeout` and the result's `elapsed` are in
 * milliseconds, as for `setTimeout`; the limit is 1 to 600 seconds. The result also has `exitCode`
 * (`undefined` if the command did not exit by itself), `signal`, `timedOut`, `stdout` and `stderr`.
 */
export function run(line, { directory = "", timeout = 120_000 } = {}) {
  // A u64 is a Number in QuickJS and a BigInt in other engines.
  const nanoseconds = Math.round(timeout * NANOSECONDS);
  const limit = typeof now() === "bigint" ? BigInt(nanoseconds) : nanoseconds;
  const output = callHost(() => hostRun({ line, directory, timeout: limit }));
  const { status, stdout, stderr, elapsed } = output;
  return {
    exitCode: status.tag === "exited" ? status.val : undefined,
    signal: status.tag === "signaled" ? status.val : undefined,
    timedOut: status.tag === "timed-out",
    stdout,
    stderr,
    elapsed: Number(elapsed) / NANOSECONDS,
  };
}
