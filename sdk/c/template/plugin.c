// Counts the lines of a file.

#include <string.h>

#include "cofferdam.h"

static void count_lines(const char *input, cofferdam_result *result) {
  const char *path = cofferdam_string(input, "path"), *wanted = cofferdam_string(input, "containing");
  size_t length;
  char *text = cofferdam_read(path, &length);
  if (!text) {
    cofferdam_fail_on(result, path);
    return;
  }
  if (!cofferdam_is_text(text, length)) {
    cofferdam_fail(result, COFFERDAM_FAILED, "%s is not text", path);
    return;
  }
  unsigned lines = 0;
  for (char *line = text; line < text + length;) {
    char *end = memchr(line, '\n', text + length - line);
    if (!end) end = text + length;
    *end = 0;
    if (!wanted || strstr(line, wanted)) lines++;
    line = end + 1;
  }
  cofferdam_answer(result, "%u", lines);
}

const cofferdam_tool cofferdam_tools[] = {
    {
        .name = "count_lines",
        .description = "Counts the lines of a text file, or those that contain a text.",
        .schema = "{\"type\": \"object\", \"required\": [\"path\"], \"additionalProperties\": false, \"properties\": {"
                  "\"path\": {\"type\": \"string\", \"format\": \"workspace-path\", \"description\": \"The file, relative to the workspace.\"},"
                  "\"containing\": {\"type\": \"string\", \"description\": \"Count only lines that contain this.\"}}}",
        .asks = COFFERDAM_READ_FILES,
        .call = count_lines,
    },
    {0},
};
