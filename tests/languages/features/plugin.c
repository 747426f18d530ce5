// Uses every part of the SDK.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cofferdam.h"

static void report(const char *input, cofferdam_result *result) {
  char *name = cofferdam_string(input, "name");
  cofferdam_add_text(result, "hello");
  cofferdam_add_json(result, "null");
  cofferdam_add_bytes(result, "image/png", "\x89PNG\r\n\x1a\n", 8);
  cofferdam_add_bytes(result, "audio/wav", "\x00\xff", 2);
  cofferdam_add_resource(result, "file:///a.txt", "text/plain", "copy", 4);
  cofferdam_set_structured(result, "{\"name\": %s, \"count\": 1}", cofferdam_quote(name));
  const char *cells[] = {"name", "note", name, "a \"quoted\", cell\nof two lines", "", ""};
  cofferdam_set_view_table(result, 2, 3, cells);
  cofferdam_set_truncated(result);
}

static void count_calls(const char *input, cofferdam_result *result) {
  char *value, **keys, text[20];
  size_t length;
  if (!cofferdam_state_get(result, "calls", &value, NULL)) return;
  snprintf(text, sizeof text, "%d", (value ? atoi(value) : 0) + 1);
  if (!cofferdam_state_set_text(result, "calls", text)) return;
  if (!cofferdam_state_set(result, "raw", "\x00\xff", 2)) return;
  if (!cofferdam_state_delete(result, "old")) return;
  if (!cofferdam_state_keys(result, &keys)) return;
  if (!cofferdam_state_get(result, "raw", &value, &length)) return;
  if (length != 2 || memcmp(value, "\x00\xff", 2) || strcmp(keys[1], "raw") || keys[2])
    return cofferdam_fail(result, COFFERDAM_FAILED, "the keys begin with %s", keys[0]);
  cofferdam_add_text(result, "%s", text);
}

static void list_files(const char *input, cofferdam_result *result) {
  cofferdam_report_progress("walking");
  cofferdam_walk *walk;
  cofferdam_entry entry;
  cofferdam_walk_options all = {0};
  for (int i = 0; i < 20; i++) {
    if (!cofferdam_walk_open(result, &all, &walk)) return;
    if (!cofferdam_walk_entry(result, walk, &entry)) return;
    cofferdam_walk_close(walk);
  }
  char text[4096];
  size_t used = 0;
  const char *globs[] = {"*.txt", NULL};
  cofferdam_walk_options options = {.globs = globs};
  if (!cofferdam_walk_open(result, &options, &walk)) return;
  do {
    if (!cofferdam_walk_entry(result, walk, &entry)) return;
    if (entry.path && entry.kind == COFFERDAM_FILE && used < sizeof text)
      used += snprintf(text + used, sizeof text - used, "%s %d %s\n", entry.path, (int)entry.size,
                       entry.modified.tv_sec ? "dated" : "undated");
  } while (entry.path);
  cofferdam_walk_close(walk);
  if (!cofferdam_walk_open(result, &options, &walk)) return;
  cofferdam_file file;
  do {
    if (!cofferdam_walk_file(result, walk, &file)) return;
    if (file.path && used < sizeof text)
      used += snprintf(text + used, sizeof text - used, "%s=%s\n", file.path, file.data);
  } while (file.path);
  if (cofferdam_walk_problems(walk)[0]) cofferdam_set_truncated(result);
  cofferdam_walk_close(walk);
  cofferdam_add_text(result, "%.*s", (int)used, text);
}

static void run_command(const char *input, cofferdam_result *result) {
  cofferdam_command_output output;
  const char *line = "echo out; echo err >&2; exit 3";
  struct timespec timeout = {.tv_sec = 5};
  if (!cofferdam_run(result, line, NULL, timeout, &output)) return;
  bool timed = output.elapsed.tv_sec < 5 && output.elapsed.tv_nsec > 0;
  cofferdam_add_text(result, "%d %s %s %s", output.exit_code, strtok(output.stdout_text, "\n"),
                     strtok(output.stderr_text, "\n"), timed ? "true" : "false");
}

static void ask_agent(const char *input, cofferdam_result *result) {
  char *answer;
  if (!cofferdam_delegate(result, "How many files are there?", &answer, NULL)) return;
  cofferdam_add_text(result, "%s", answer);
}

static void make_plan(const char *input, cofferdam_result *result) {
  char *mode;
  if (!cofferdam_present_plan(result, "1. Nothing", &mode)) return;
  cofferdam_add_text(result, "%s", mode);
}

static void get_page(const char *input, cofferdam_result *result) {
  const char *headers[] = {"accept", "text/plain", NULL};
  cofferdam_request request = {
      .url = cofferdam_string(input, "url"), .headers = headers, .max_bytes = 1024};
  cofferdam_response response;
  if (!cofferdam_fetch(result, &request, &response)) return;
  const char *type = cofferdam_header(&response, "content-type");
  cofferdam_add_text(result, "%d %s %s", response.status, type ? type : "", response.body);
}

static void fail(const char *input, cofferdam_result *result) {
  const char *error = cofferdam_string(input, "error");
  if (strcmp(error, "not-found") == 0)
    return cofferdam_fail(result, COFFERDAM_NOT_FOUND, "nothing is here");
  if (strcmp(error, "timed-out") == 0)
    return cofferdam_fail(result, COFFERDAM_TIMED_OUT, "it took too long");
  if (strcmp(error, "failed") == 0) return cofferdam_fail(result, COFFERDAM_FAILED, "it failed");
  cofferdam_fail_input(result, "/error", "there is no such error");
}

#define OBJECT(properties)                                        \
  "{\"type\": \"object\", \"additionalProperties\": false,"       \
  " \"properties\": {" properties "}}"
#define TEXT "{\"type\": \"string\"}"

static const char *const HOSTS[] = {"example.com", "GET,POST 127.0.0.1:8753", NULL};

const cofferdam_tool cofferdam_tools[] = {
    {.name = "report",
     .title = "Report",
     .description = "Returns every kind of content.",
     .input_schema = "{\"type\": \"object\", \"required\": [\"name\"],"
                     " \"properties\": {\"name\": " TEXT "}}",
     .output_schema = OBJECT("\"name\": " TEXT ", \"count\": {\"type\": \"integer\"}"),
     .call = report},
    {.name = "count_calls",
     .description = "Counts its calls.",
     .input_schema = OBJECT(""),
     .capabilities = COFFERDAM_KEEP_STATE,
     .call = count_calls},
    {.name = "list_files",
     .description = "Lists and reads text files.",
     .input_schema = OBJECT(""),
     .capabilities = COFFERDAM_READ_FILES,
     .call = list_files},
    {.name = "run_command",
     .description = "Runs a command.",
     .input_schema = OBJECT(""),
     .capabilities = COFFERDAM_RUN_COMMANDS,
     .hints = COFFERDAM_EXCLUSIVE | COFFERDAM_CONFIRM,
     .call = run_command},
    {.name = "ask_agent",
     .description = "Asks a sub-agent.",
     .input_schema = OBJECT(""),
     .capabilities = COFFERDAM_DELEGATE,
     .call = ask_agent},
    {.name = "make_plan",
     .description = "Presents a plan.",
     .input_schema = OBJECT(""),
     .capabilities = COFFERDAM_PRESENT_PLAN,
     .call = make_plan},
    {.name = "get_page",
     .description = "Reads a web page.",
     .input_schema = "{\"type\": \"object\", \"required\": [\"url\"],"
                     " \"properties\": {\"url\": " TEXT "}}",
     .fetch = HOSTS,
     .call = get_page},
    {.name = "fail",
     .description = "Fails.",
     .input_schema = "{\"type\": \"object\", \"required\": [\"error\"],"
                     " \"properties\": {\"error\": " TEXT "}}",
     .call = fail},
    {0},
};
