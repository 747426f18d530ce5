#include "cofferdam.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bindings.h"

struct cofferdam_result {
  bool failed;
  cofferdam_failure why;
  char *text;
};

// --- The export `cofferdam:plugin/tools`

static void *need(size_t size) {
  void *memory = calloc(1, size ? size : 1);
  if (!memory) abort();
  return memory;
}

// The generated code frees what it was handed, so it gets copies.
static bindings_string_t copy(const char *text) {
  bindings_string_t string;
  bindings_string_dup(&string, text);
  return string;
}

static void declare(const cofferdam_tool *tool, exports_cofferdam_plugin_tools_tool_t *declared) {
  static const struct {
    unsigned asked;
    uint8_t tag;
  } table[] = {
      {COFFERDAM_READ_FILES, EXPORTS_COFFERDAM_PLUGIN_TOOLS_CAPABILITY_READ_FILES},
      {COFFERDAM_WRITE_FILES, EXPORTS_COFFERDAM_PLUGIN_TOOLS_CAPABILITY_WRITE_FILES},
      {COFFERDAM_RUN_COMMANDS, EXPORTS_COFFERDAM_PLUGIN_TOOLS_CAPABILITY_RUN_COMMANDS},
  };
  declared->name = copy(tool->name);
  declared->description = copy(tool->description);
  declared->input_schema = copy(tool->schema);
  declared->capabilities.ptr = need(sizeof table / sizeof *table * sizeof *declared->capabilities.ptr);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (tool->asks & table[i].asked) declared->capabilities.ptr[declared->capabilities.len++].tag = table[i].tag;
  if (tool->hints & COFFERDAM_EXCLUSIVE) declared->hints |= EXPORTS_COFFERDAM_PLUGIN_TOOLS_HINTS_EXCLUSIVE;
  if (tool->hints & COFFERDAM_CONFIRM) declared->hints |= EXPORTS_COFFERDAM_PLUGIN_TOOLS_HINTS_CONFIRM;
}

void exports_cofferdam_plugin_tools_list_tools(exports_cofferdam_plugin_tools_list_tool_t *list) {
  size_t count = 0;
  while (cofferdam_tools[count].name) count++;
  list->len = count;
  list->ptr = need(count * sizeof *list->ptr);
  for (size_t i = 0; i < count; i++) declare(&cofferdam_tools[i], &list->ptr[i]);
}

bool exports_cofferdam_plugin_tools_call_tool(bindings_string_t *name, bindings_string_t *input,
                                              exports_cofferdam_plugin_tools_output_t *output,
                                              exports_cofferdam_plugin_tools_tool_error_t *error) {
  char *called = need(name->len + 1), *json = need(input->len + 1);
  memcpy(called, name->ptr, name->len);
  memcpy(json, input->ptr, input->len);

  cofferdam_result result = {.failed = true, .why = COFFERDAM_FAILED, .text = NULL};
  const cofferdam_tool *tool = cofferdam_tools;
  while (tool->name && strcmp(tool->name, called) != 0) tool++;
  if (tool->name)
    tool->call(json, &result);
  else
    cofferdam_fail(&result, COFFERDAM_NOT_FOUND, "this plugin has no tool %s", called);

  const char *text = result.text ? result.text : "the tool did not answer";
  if (!result.failed) {
    memset(output, 0, sizeof *output);
    output->content.ptr = need(sizeof *output->content.ptr);
    output->content.len = 1;
    output->content.ptr[0].tag = EXPORTS_COFFERDAM_PLUGIN_TOOLS_CONTENT_TEXT;
    output->content.ptr[0].val.text = copy(text);
    return true;
  }
  memset(error, 0, sizeof *error);
  switch (result.why) {
    case COFFERDAM_INVALID_INPUT:
      error->tag = EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_INVALID_INPUT;
      error->val.invalid_input.pointer = copy("");
      error->val.invalid_input.message = copy(text);
      break;
    case COFFERDAM_NOT_FOUND:
      error->tag = EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_NOT_FOUND;
      error->val.not_found = copy(text);
      break;
    case COFFERDAM_FAILED:
      error->tag = EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_FAILED;
      error->val.failed = copy(text);
      break;
  }
  return false;
}

// --- Answering

static void say(cofferdam_result *result, const char *format, va_list arguments) {
  free(result->text);
  if (vasprintf(&result->text, format, arguments) < 0) abort();
}

void cofferdam_answer(cofferdam_result *result, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(result, format, arguments);
  va_end(arguments);
  result->failed = false;
}

void cofferdam_fail(cofferdam_result *result, cofferdam_failure why, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(result, format, arguments);
  va_end(arguments);
  result->failed = true;
  result->why = why;
}

void cofferdam_fail_on(cofferdam_result *result, const char *path) {
  int why = errno;
  struct stat workspace;
  // Without the permission there is no workspace, and every path looks as if nothing were there.
  if (stat(".", &workspace) != 0) {
    cofferdam_fail(result, COFFERDAM_FAILED, "this tool may not read files; it would have to ask for `read-files`");
    return;
  }
  switch (why) {
    case ENOENT: cofferdam_fail(result, COFFERDAM_NOT_FOUND, "%s does not exist", path); break;
    case EBADF: // what reading a directory comes to
    case EISDIR: cofferdam_fail(result, COFFERDAM_FAILED, "%s is a directory", path); break;
    default: cofferdam_fail(result, COFFERDAM_FAILED, "%s: %s", path, strerror(why)); break;
  }
}

// --- Files

char *cofferdam_read(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t room = 1 << 16, used = 0;
  char *bytes = malloc(room);
  while (bytes) {
    used += fread(bytes + used, 1, room - used - 1, file);
    if (used < room - 1) break;
    char *more = realloc(bytes, room *= 2);
    if (!more) free(bytes);
    bytes = more;
  }
  int failed = bytes ? ferror(file) : 1;
  int error = bytes ? errno : ENOMEM;
  fclose(file);
  if (failed) {
    free(bytes);
    errno = error;
    return NULL;
  }
  bytes[used] = 0;
  *length = used;
  return bytes;
}

bool cofferdam_is_text(const char *bytes, size_t length) {
  const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
  while (at < end) {
    unsigned char first = *at++;
    int more = first == 0 ? -1 : first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
    if (more < 0 || end - at < more) return false;
    // The second byte excludes longer forms than needed, surrogates, and what is beyond Unicode.
    if (more > 0) {
      unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80, high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      if (*at < low || *at > high) return false;
    }
    for (; more > 0; more--)
      if ((*at++ & 0xc0) != 0x80) return false;
  }
  return true;
}

// --- Input. The host has checked that it is JSON, and an object.

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *skip_string(const char *at) {
  for (at++; *at && *at != '"'; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

static const char *skip_value(const char *at) {
  if (*at == '"') return skip_string(at);
  if (*at != '{' && *at != '[') return at + strcspn(at, ",]} \t\r\n");
  int depth = 0;
  while (*at) {
    if (*at == '"') {
      at = skip_string(at);
      continue;
    }
    if (*at == '{' || *at == '[') depth++;
    if (*at == '}' || *at == ']') depth--;
    at++;
    if (depth == 0) break;
  }
  return at;
}

static unsigned hex(const char *at) {
  char digits[5] = {0};
  memcpy(digits, at, strnlen(at, 4));
  return (unsigned)strtoul(digits, NULL, 16);
}

static char *put(char *to, unsigned c) {
  if (c < 0x80) {
    *to++ = (char)c;
  } else if (c < 0x800) {
    *to++ = (char)(0xc0 | c >> 6);
    *to++ = (char)(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *to++ = (char)(0xe0 | c >> 12);
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  } else {
    *to++ = (char)(0xf0 | c >> 18);
    *to++ = (char)(0x80 | (c >> 12 & 0x3f));
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  }
  return to;
}

// The text of a JSON string; it is never longer than its JSON.
static char *decode(const char *at) {
  const char *end = skip_string(at);
  char *text = need((size_t)(end - at) + 1), *to = text;
  for (at++; at < end && *at != '"'; at++) {
    if (*at != '\\') {
      *to++ = *at;
      continue;
    }
    static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
    const char *known = strchr(from, *++at);
    if (*at == 'u') {
      unsigned c = hex(at + 1);
      at += 4;
      if (c >= 0xd800 && c < 0xdc00 && at[1] == '\\' && at[2] == 'u') {
        c = 0x10000 + ((c - 0xd800) << 10) + (hex(at + 3) - 0xdc00);
        at += 6;
      }
      to = put(to, c);
    } else {
      *to++ = known ? into[known - from] : *at;
    }
  }
  *to = 0;
  return text;
}

// Where the value under a key begins; NULL if there is none.
static const char *find(const char *input, const char *key) {
  const char *at = skip_space(input);
  if (*at != '{') return NULL;
  at = skip_space(at + 1);
  while (*at == '"') {
    char *name = decode(at);
    bool found = strcmp(name, key) == 0;
    free(name);
    at = skip_space(skip_string(at));
    if (*at != ':') return NULL;
    at = skip_space(at + 1);
    if (found) return at;
    at = skip_space(skip_value(at));
    if (*at != ',') return NULL;
    at = skip_space(at + 1);
  }
  return NULL;
}

char *cofferdam_string(const char *input, const char *key) {
  const char *at = find(input, key);
  return at && *at == '"' ? decode(at) : NULL;
}

double cofferdam_number(const char *input, const char *key, double otherwise) {
  const char *at = find(input, key);
  return at && strchr("-0123456789", *at) ? strtod(at, NULL) : otherwise;
}

bool cofferdam_bool(const char *input, const char *key, bool otherwise) {
  const char *at = find(input, key);
  return at && (*at == 't' || *at == 'f') ? *at == 't' : otherwise;
}
