#include "cofferdam.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cofferdam_internal.h"

// Generated names are long.
typedef exports_cofferdam_plugin_tools_content_t content_t;
typedef exports_cofferdam_plugin_tools_tool_error_t tool_error_t;

struct cofferdam_result {
  content_t *content;
  size_t count;
  bindings_option_string_t structured;
  exports_cofferdam_plugin_tools_option_content_t view;
  bool truncated;
  bool failed;
  tool_error_t error;
};

void *cofferdam_alloc(size_t size) {
  void *memory = calloc(1, size ? size : 1);
  if (!memory) abort();
  return memory;
}

// The generated code frees its arguments and results, so it gets copies.
bindings_string_t cofferdam_copy(const char *text) {
  bindings_string_t string;
  bindings_string_dup(&string, text ? text : "");
  return string;
}

char *cofferdam_terminate(const uint8_t *bytes, size_t length) {
  char *text = cofferdam_alloc(length + 1);
  if (length) memcpy(text, bytes, length);
  return text;
}

static bindings_option_string_t optional(const char *text) {
  bindings_option_string_t option = {.is_some = text != NULL};
  if (text) option.val = cofferdam_copy(text);
  return option;
}

static char *format_text(const char *format, va_list arguments) {
  char *text;
  if (vasprintf(&text, format, arguments) < 0) abort();
  return text;
}

#define FORMAT(text, format)          \
  va_list arguments_;                 \
  va_start(arguments_, format);       \
  char *text = format_text(format, arguments_); \
  va_end(arguments_)

// --- The export `cofferdam:plugin/tools`

static void add_capability(exports_cofferdam_plugin_tools_tool_t *tool, const char *name,
                           const char *const *parameters) {
  size_t count = 0;
  while (parameters && parameters[count]) count++;
  exports_cofferdam_plugin_tools_capability_t *added =
      &tool->capabilities.ptr[tool->capabilities.len++];
  added->name = cofferdam_copy(name);
  added->parameters.len = count;
  added->parameters.ptr = cofferdam_alloc(count * sizeof *added->parameters.ptr);
  for (size_t i = 0; i < count; i++) added->parameters.ptr[i] = cofferdam_copy(parameters[i]);
}

static void add_hint(exports_cofferdam_plugin_tools_tool_t *tool, const char *name) {
  tool->hints.ptr[tool->hints.len++].name = cofferdam_copy(name);
}

static void declare(const cofferdam_tool *tool, exports_cofferdam_plugin_tools_tool_t *declared) {
  static const struct {
    unsigned capability;
    const char *name;
  } names[] = {
      {COFFERDAM_READ_FILES, "read-files"},     {COFFERDAM_WRITE_FILES, "write-files"},
      {COFFERDAM_RUN_COMMANDS, "run-commands"}, {COFFERDAM_DELEGATE, "delegate"},
      {COFFERDAM_KEEP_STATE, "keep-state"},     {COFFERDAM_PRESENT_PLAN, "present-plan"},
  };
  const size_t count = sizeof names / sizeof *names;
  declared->name = cofferdam_copy(tool->name);
  declared->title = optional(tool->title);
  declared->description = cofferdam_copy(tool->description);
  declared->input_schema = cofferdam_copy(tool->input_schema);
  declared->output_schema = optional(tool->output_schema);
  declared->capabilities.ptr = cofferdam_alloc((count + 1) * sizeof *declared->capabilities.ptr);
  for (size_t i = 0; i < count; i++)
    if (tool->capabilities & names[i].capability) add_capability(declared, names[i].name, NULL);
  if (tool->fetch) add_capability(declared, "fetch", tool->fetch);
  declared->hints.ptr = cofferdam_alloc(2 * sizeof *declared->hints.ptr);
  if (tool->hints & COFFERDAM_EXCLUSIVE) add_hint(declared, "exclusive");
  if (tool->hints & COFFERDAM_CONFIRM) add_hint(declared, "confirm");
}

void exports_cofferdam_plugin_tools_list_tools(exports_cofferdam_plugin_tools_list_tool_t *list) {
  size_t count = 0;
  while (cofferdam_tools[count].name) count++;
  list->len = count;
  list->ptr = cofferdam_alloc(count * sizeof *list->ptr);
  for (size_t i = 0; i < count; i++) declare(&cofferdam_tools[i], &list->ptr[i]);
}

bool exports_cofferdam_plugin_tools_call_tool(bindings_string_t *name, bindings_string_t *input,
                                              exports_cofferdam_plugin_tools_output_t *output,
                                              tool_error_t *error) {
  char *called = cofferdam_terminate(name->ptr, name->len);
  char *json = cofferdam_terminate(input->ptr, input->len);
  cofferdam_result result = {0};
  const cofferdam_tool *tool = cofferdam_tools;
  while (tool->name && strcmp(tool->name, called) != 0) tool++;
  if (tool->name)
    tool->call(json, &result);
  else
    cofferdam_fail(&result, COFFERDAM_NOT_FOUND, "this plugin has no tool %s", called);
  if (!result.failed && !result.count && !result.structured.is_some)
    cofferdam_fail(&result, COFFERDAM_FAILED, "the tool returned without a result");
  if (result.failed) {
    *error = result.error;
    return false;
  }
  memset(output, 0, sizeof *output);
  output->content.ptr = result.content;
  output->content.len = result.count;
  output->structured = result.structured;
  output->view = result.view;
  output->truncated = result.truncated;
  return true;
}

// --- Results

static content_t text_content(const char *media_type, const char *text) {
  content_t content = {.media_type = cofferdam_copy(media_type)};
  content.body.tag = EXPORTS_COFFERDAM_PLUGIN_TOOLS_BODY_TEXT;
  content.body.val.text = cofferdam_copy(text);
  return content;
}

static content_t bytes_content(const char *media_type, const void *data, size_t length) {
  content_t content = {.media_type = cofferdam_copy(media_type)};
  content.body.tag = EXPORTS_COFFERDAM_PLUGIN_TOOLS_BODY_BYTES;
  content.body.val.bytes.ptr = (uint8_t *)cofferdam_terminate(data, length);
  content.body.val.bytes.len = length;
  return content;
}

static void add(cofferdam_result *result, content_t content) {
  content_t *more = realloc(result->content, (result->count + 1) * sizeof content);
  if (!more) abort();
  more[result->count++] = content;
  result->content = more;
}

static void set_view(cofferdam_result *result, content_t content) {
  result->view.is_some = true;
  result->view.val = content;
}

void cofferdam_add_text(cofferdam_result *result, const char *format, ...) {
  FORMAT(text, format);
  add(result, text_content("text/plain", text));
}

void cofferdam_add_json(cofferdam_result *result, const char *format, ...) {
  FORMAT(text, format);
  add(result, text_content("application/json", text));
}

void cofferdam_add_bytes(cofferdam_result *result, const char *media_type, const void *data,
                         size_t length) {
  add(result, bytes_content(media_type, data, length));
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), wanted = strlen(end);
  return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

void cofferdam_add_resource(cofferdam_result *result, const char *uri, const char *media_type,
                            const void *data, size_t length) {
  bool is_text = strncmp(media_type, "text/", 5) == 0 || ends_with(media_type, "+json") ||
                 ends_with(media_type, "+xml") || strcmp(media_type, "application/json") == 0;
  content_t content = is_text ? text_content(media_type, cofferdam_terminate(data, length))
                              : bytes_content(media_type, data, length);
  content.uri = optional(uri);
  add(result, content);
}

void cofferdam_set_structured(cofferdam_result *result, const char *format, ...) {
  FORMAT(text, format);
  result->structured = optional(text);
}

void cofferdam_set_view_text(cofferdam_result *result, const char *text) {
  set_view(result, text_content("text/plain", text));
}

void cofferdam_set_view_diff(cofferdam_result *result, const char *diff) {
  set_view(result, text_content("text/x-diff", diff));
}

void cofferdam_set_view_table(cofferdam_result *result, size_t columns, size_t rows,
                              const char *const *cells) {
  size_t length = 1;
  // Each quote is doubled, and each cell has at most two quotes and two bytes after it.
  for (size_t i = 0; i < columns * rows; i++) length += 2 * strlen(cells[i]) + 4;
  char *csv = cofferdam_alloc(length), *to = csv;
  for (size_t i = 0; i < columns * rows; i++) {
    // An empty text is quoted, because a blank line is not a row.
    bool quoted = !*cells[i] || strpbrk(cells[i], ",\"\r\n") != NULL;
    if (quoted) *to++ = '"';
    for (const char *c = cells[i]; *c; c++) {
      if (*c == '"') *to++ = '"';
      *to++ = *c;
    }
    if (quoted) *to++ = '"';
    bool last = (i + 1) % columns == 0;
    to = stpcpy(to, last ? "\r\n" : ",");
  }
  set_view(result, text_content("text/csv", csv));
}

void cofferdam_set_truncated(cofferdam_result *result) { result->truncated = true; }

char *cofferdam_quote(const char *text) {
  char *json = cofferdam_alloc(6 * strlen(text) + 3), *to = json;
  *to++ = '"';
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c == '"' || *c == '\\') *to++ = '\\';
    if (*c < 0x20)
      to += sprintf(to, "\\u%04x", *c);
    else
      *to++ = (char)*c;
  }
  *to++ = '"';
  return json;
}

// --- Errors

static void set_error(cofferdam_result *result, uint8_t tag) {
  cofferdam_reset(result);
  result->failed = true;
  result->error.tag = tag;
}

void cofferdam_reset(cofferdam_result *result) { memset(result, 0, sizeof *result); }

void cofferdam_fail_input(cofferdam_result *result, const char *pointer, const char *format, ...) {
  FORMAT(text, format);
  set_error(result, EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_INVALID_INPUT);
  result->error.val.invalid_input.pointer = cofferdam_copy(pointer);
  result->error.val.invalid_input.message = cofferdam_copy(text);
}

void cofferdam_fail(cofferdam_result *result, cofferdam_error error, const char *format, ...) {
  FORMAT(text, format);
  switch (error) {
    case COFFERDAM_INVALID_INPUT: cofferdam_fail_input(result, "", "%s", text); return;
    case COFFERDAM_NOT_FOUND:
      set_error(result, EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_NOT_FOUND);
      result->error.val.not_found = cofferdam_copy(text);
      return;
    case COFFERDAM_TIMED_OUT:
      set_error(result, EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_TIMED_OUT);
      result->error.val.timed_out = cofferdam_copy(text);
      return;
    case COFFERDAM_FAILED: break;
  }
  set_error(result, EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_FAILED);
  result->error.val.failed = cofferdam_copy(text);
}

void cofferdam_deny(cofferdam_result *result, cofferdam_plugin_types_denial_t denial) {
  set_error(result, EXPORTS_COFFERDAM_PLUGIN_TOOLS_TOOL_ERROR_DENIED);
  result->error.val.denied = denial;
}

void cofferdam_fail_errno(cofferdam_result *result, const char *path) {
  int code = errno;
  struct stat workspace;
  // Without the permission there is no workspace, and every path seems to be missing.
  if (stat(".", &workspace) != 0) {
    cofferdam_fail(result, COFFERDAM_FAILED, "this tool cannot read files: it lacks `read-files`");
    return;
  }
  switch (code) {
    case ENOENT: cofferdam_fail(result, COFFERDAM_NOT_FOUND, "%s does not exist", path); break;
    case EBADF:  // the result of reading a directory
    case EISDIR: cofferdam_fail(result, COFFERDAM_FAILED, "%s is a directory", path); break;
    default: cofferdam_fail(result, COFFERDAM_FAILED, "%s: %s", path, strerror(code)); break;
  }
}
