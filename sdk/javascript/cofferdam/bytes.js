// Text as UTF-8. Engines without `TextDecoder` have `escape` and `unescape`, in native code.

// An engine limits the number of arguments.
const ARGUMENTS = 8192;

/** Returns the text of some bytes, or `undefined` if they are not UTF-8. */
export function decodeText(...chunks) {
  const parts = [];
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += ARGUMENTS) {
      parts.push(String.fromCharCode.apply(null, chunk.subarray(at, at + ARGUMENTS)));
    }
  }
  try {
    return decodeURIComponent(escape(parts.join("")));
  } catch {
    return undefined;
  }
}

/** Returns a text as a `Uint8Array`. */
export function encodeText(text) {
  const bytes = unescape(encodeURIComponent(text));
  return Uint8Array.from(bytes, (char) => char.charCodeAt(0));
}
