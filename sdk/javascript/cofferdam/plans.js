// Plans for the user's approval. Needs the capability `PRESENT_PLAN`.

import { present as hostPresent } from "cofferdam:plugin/plans@0.2.0";

import { callHost } from "./errors.js";

/** Presents a plan in Markdown and waits for the decision. Returns the new mode. */
export function present(plan) {
  return callHost(() => hostPresent(plan));
}
