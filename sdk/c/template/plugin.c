// Counts the lines of a file.

#include <string.h>

#include "cofferdam.h"

static void count_lines(const char *input, cofferdam_result *result) {
  const char *path = cofferdam_string(input, "path");
  const char *wanted = cofferdam_string(input, "containing");
  size_t length;
  char *text = cofferdam_read(path, &length);
  if (!text) return cofferdam_fail_errno(result, path);
  if (!cofferdam_is_text(text, length))
    return cofferdam_fail(result, COFFERDAM_FAILED, "%s is not text", path);
  unsigned lines = 0;
  for (char *line = text, *end; line < text + length; line = end + 1) {
    end = memchr(line, '\n', text + length - line);
    if (!end) end = text + length;
    *end = 0;
    if (!wanted || strstr(line, wanted)) lines++;
  }
  cofferdam_add_text(result, "%u", lines);
}

static const char INPUT_SCHEMA[] = "{\"type\": \"object\","
    "\"required\": [\"path\"], \"additionalProperties\": false, \"properties\": {"
    "\"path\": {\"type\": \"string\", \"format\": \"workspace-path\","
    "  \"description\": \"The file, relative to the workspace.\"},"
    "\"containing\": {\"type\": \"string\","
    "  \"description\": \"Count only lines with this string.\"}}}";

const cofferdam_tool cofferdam_tools[] = {
    {.name = "count_lines",
     .title = "Count lines",
     .description = "Counts the lines of a text file, or the lines that contain a string.",
     .input_schema = INPUT_SCHEMA,
     .capabilities = COFFERDAM_READ_FILES,
     .call = count_lines},
    {0},
};
