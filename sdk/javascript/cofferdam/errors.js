// The errors of a tool call. The model sees the message, so explain how to fix the problem.

/** The file or other object of the call does not exist. */
export class NotFound extends Error {}

/** An operation took too long. */
export class TimedOut extends Error {}

/** Any other failure. */
export class Failed extends Error {}

/** The input is valid under the schema, but the tool cannot use it. */
export class InvalidInput extends Error {
  /** `pointer` is a JSON pointer (RFC 6901) into the input; empty for the whole input. */
  constructor(pointer, message) {
    super(message);
    this.pointer = pointer;
  }
}

/** The host denied an action. If it is not caught, the model and the user see the reason. */
export class Denied extends Error {
  /** `denial` has `code`, `reason` and `remedy`. */
  constructor(denial) {
    super(denial.reason);
    this.denial = denial;
  }
}

/** Calls a function of the host, and converts its error to one of this module. */
export function callHost(call) {
  try {
    return call();
  } catch (error) {
    // Engines differ: some throw the value, others an error that contains it.
    const { tag, val } = error?.payload ?? error ?? {};
    if (tag === "denied") throw new Denied(val);
    if (tag === "not-found") throw new NotFound(val);
    if (tag === "invalid" || tag === "invalid-glob") throw new InvalidInput("", val);
    if (typeof val === "string") throw new Failed(val);
    if (tag === "failed") throw Object.assign(new Failed(val.message), { code: val.code });
    throw error;
  }
}
