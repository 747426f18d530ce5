// Progress of a long call. Needs no capability.

/** Shows the first 200 characters of a line to the user. */
export { report } from "cofferdam:plugin/progress@0.2.0";
