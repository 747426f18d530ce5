// Write Cofferdam plugins in C. A plugin is a table of tools, each with a function.
//
//     static void shout(const char *input, cofferdam_result *result) {
//       char *text = cofferdam_string(input, "text");
//       for (char *c = text; *c; c++) *c = toupper(*c);
//       cofferdam_add_text(result, "%s", text);
//     }
//
//     const cofferdam_tool cofferdam_tools[] = {
//         {.name = "shout",
//          .description = "Converts a text to uppercase.",
//          .input_schema = "{\"type\": \"object\", …}",
//          .call = shout},
//         {0},
//     };
//
// You need not free memory: the host drops the instance after the call. The workspace is the root
// directory, so `fopen("src/main.c", "r")` works for a tool with COFFERDAM_READ_FILES.

#ifndef COFFERDAM_H
#define COFFERDAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

// --- Declaration

// The permissions that a tool requests. Request as few as possible. The capability `fetch` is the
// field `fetch` of the tool.
enum {
  COFFERDAM_READ_FILES = 1 << 0,
  COFFERDAM_WRITE_FILES = 1 << 1,
  COFFERDAM_RUN_COMMANDS = 1 << 2,
  COFFERDAM_DELEGATE = 1 << 3,
  COFFERDAM_KEEP_STATE = 1 << 4,
  COFFERDAM_PRESENT_PLAN = 1 << 5,
};

// Hints. EXCLUSIVE: never run the tool in parallel with another one. CONFIRM: ask the user before
// every call.
enum { COFFERDAM_EXCLUSIVE = 1, COFFERDAM_CONFIRM = 2 };

// The result of a call: content, or an error. The functions below fill it.
typedef struct cofferdam_result cofferdam_result;

typedef struct {
  const char *name;
  // A short name for people; may be NULL.
  const char *title;
  const char *description;
  // A JSON Schema of type `object`. The host validates each input against it.
  const char *input_schema;
  // A JSON Schema of the structured result; may be NULL.
  const char *output_schema;
  unsigned capabilities;
  // The capability to send HTTP requests: patterns such as "api.example.com", with a NULL at the
  // end; may be NULL.
  const char *const *fetch;
  unsigned hints;
  // `input` is the JSON text of an object that is valid under the input schema.
  void (*call)(const char *input, cofferdam_result *result);
} cofferdam_tool;

// The tools of the plugin. The last one has no name.
extern const cofferdam_tool cofferdam_tools[];

// --- Input

// Returns the string under a key of the input, as UTF-8; NULL if there is none.
char *cofferdam_string(const char *input, const char *key);

// Returns the number under a key of the input, or `fallback`.
double cofferdam_number(const char *input, const char *key, double fallback);

// Returns the boolean under a key of the input, or `fallback`.
bool cofferdam_bool(const char *input, const char *key, bool fallback);

// --- Results. Text is UTF-8.

#define COFFERDAM_FORMAT(at) __attribute__((format(printf, at, (at) + 1)))

// Adds a formatted text.
void cofferdam_add_text(cofferdam_result *result, const char *format, ...) COFFERDAM_FORMAT(2);

// Adds a formatted JSON text. `cofferdam_quote` makes a JSON string.
void cofferdam_add_json(cofferdam_result *result, const char *format, ...) COFFERDAM_FORMAT(2);

// Adds bytes of a media type, such as an image ("image/png") or audio ("audio/wav").
void cofferdam_add_bytes(cofferdam_result *result, const char *media_type, const void *data,
                         size_t length);

// Adds a copy of the resource with a URI: text if the media type begins with "text/", is
// "application/json" or ends with "+json" or "+xml", and bytes otherwise.
void cofferdam_add_resource(cofferdam_result *result, const char *uri, const char *media_type,
                            const void *data, size_t length);

// Sets the structured result, formatted JSON text that is valid under the output schema.
void cofferdam_set_structured(cofferdam_result *result, const char *format, ...)
    COFFERDAM_FORMAT(2);

// Sets what the user sees instead of the content: a text, or a unified diff.
void cofferdam_set_view_text(cofferdam_result *result, const char *text);
void cofferdam_set_view_diff(cofferdam_result *result, const char *diff);

// Sets a table as the view. `cells` has `rows` rows of `columns` cells; the first row is the
// header. The host gets CSV (RFC 4180).
void cofferdam_set_view_table(cofferdam_result *result, size_t columns, size_t rows,
                              const char *const *cells);

// Marks the result as truncated. The content should explain how to get the rest.
void cofferdam_set_truncated(cofferdam_result *result);

// Returns a text as a JSON string, with its quotes.
char *cofferdam_quote(const char *text);

// --- Errors. The last error of a call counts, and discards all content.

typedef enum {
  COFFERDAM_INVALID_INPUT,
  COFFERDAM_NOT_FOUND,
  COFFERDAM_TIMED_OUT,
  COFFERDAM_FAILED
} cofferdam_error;

// Fails with a formatted message that tells the model how to fix the problem.
void cofferdam_fail(cofferdam_result *result, cofferdam_error error, const char *format, ...)
    COFFERDAM_FORMAT(3);

// Fails because of a part of the input. `pointer` is a JSON pointer such as "/lines/0".
void cofferdam_fail_input(cofferdam_result *result, const char *pointer, const char *format, ...)
    COFFERDAM_FORMAT(3);

// Fails with the error in `errno`, about a file.
void cofferdam_fail_errno(cofferdam_result *result, const char *path);

// Discards the content and the error so far, for a tool that can continue after an error.
void cofferdam_reset(cofferdam_result *result);

// --- Files

// Reads a whole file, with a NUL after its end. Returns NULL and sets `errno` if it cannot.
char *cofferdam_read(const char *path, size_t *length);

// Returns whether some bytes are UTF-8 without NUL characters.
bool cofferdam_is_text(const char *bytes, size_t length);

// --- The host. If a function returns false, it has set the error of `result`: return from the
// tool, or call `cofferdam_reset` and continue.

// State: per-session key-value storage for one tool. Needs COFFERDAM_KEEP_STATE. A value that does
// not exist is NULL. A value has a NUL after its end.
bool cofferdam_state_get(cofferdam_result *result, const char *key, char **value, size_t *length);
bool cofferdam_state_set(cofferdam_result *result, const char *key, const void *value,
                         size_t length);
bool cofferdam_state_set_text(cofferdam_result *result, const char *key, const char *text);
bool cofferdam_state_delete(cofferdam_result *result, const char *key);
// The keys in order, with a NULL at the end.
bool cofferdam_state_keys(cofferdam_result *result, char ***keys);

// Walks: fast access to many files. Needs COFFERDAM_READ_FILES or COFFERDAM_WRITE_FILES.
typedef struct cofferdam_walk cofferdam_walk;

typedef struct {
  // A directory or a file; NULL for the whole workspace.
  const char *root;
  // Globs in the syntax of .gitignore, with a NULL at the end; or NULL.
  const char *const *globs;
  bool hidden;
  bool no_ignore;
  // The maximum number of directory levels; 0 for no limit.
  unsigned max_depth;
  // The walk omits files that contain none of these strings. Ends with a NULL; or NULL.
  const char *const *required;
  bool required_ignore_case;
} cofferdam_walk_options;

typedef enum {
  COFFERDAM_FILE,
  COFFERDAM_DIRECTORY,
  COFFERDAM_SYMLINK,
  COFFERDAM_OTHER
} cofferdam_entry_kind;

typedef struct {
  char *path;
  cofferdam_entry_kind kind;
  uint64_t size;
  // The time of the last change; 0 if it is not known.
  struct timespec modified;
} cofferdam_entry;

typedef struct {
  char *path;
  // The content, with a NUL after its end.
  char *data;
  size_t length;
} cofferdam_file;

// Begins a walk in the order of paths. A call can have 16 open walks.
bool cofferdam_walk_open(cofferdam_result *result, const cofferdam_walk_options *options,
                         cofferdam_walk **walk);
// Returns the next entry or the next file; `path` is NULL at the end.
bool cofferdam_walk_entry(cofferdam_result *result, cofferdam_walk *walk, cofferdam_entry *entry);
bool cofferdam_walk_file(cofferdam_result *result, cofferdam_walk *walk, cofferdam_file *file);
// Returns a line for each path that could not be read so far, with a NULL at the end.
char **cofferdam_walk_problems(cofferdam_walk *walk);
void cofferdam_walk_close(cofferdam_walk *walk);

// Commands on the user's machine. Needs COFFERDAM_RUN_COMMANDS.
typedef struct {
  // The exit code, or -1 if the command did not exit by itself.
  int exit_code;
  // The signal that ended the command, or 0.
  int signal;
  bool timed_out;
  char *stdout_text;
  char *stderr_text;
  struct timespec elapsed;
} cofferdam_command_output;

// Runs a command line with `sh -c` and waits until it exits. `directory` is a directory of the
// workspace; NULL for its root. `timeout` is 1 to 600 seconds.
bool cofferdam_run(cofferdam_result *result, const char *line, const char *directory,
                   struct timespec timeout, cofferdam_command_output *output);

// HTTP requests. Needs the capability `fetch`.
typedef struct {
  // A method such as "POST"; NULL for GET.
  const char *method;
  const char *url;
  // Alternating names and values, with a NULL at the end; or NULL.
  const char *const *headers;
  const void *body;
  size_t body_length;
  // The maximum size of the response body in bytes; 0 for 8 MiB.
  size_t max_bytes;
} cofferdam_request;

typedef struct {
  int status;
  // Alternating names and values, with a NULL at the end.
  char **headers;
  // The body, with a NUL after its end.
  char *body;
  size_t length;
  // Whether `body` is the whole body.
  bool complete;
} cofferdam_response;

// Sends a request and reads the response, which can have an error status or be a redirect.
bool cofferdam_fetch(cofferdam_result *result, const cofferdam_request *request,
                     cofferdam_response *response);
// Returns the first header with a name, ignoring case; NULL if there is none.
const char *cofferdam_header(const cofferdam_response *response, const char *name);

// Read-only sub-agents. Needs COFFERDAM_DELEGATE. `complete` may be NULL.
bool cofferdam_delegate(cofferdam_result *result, const char *task, char **answer, bool *complete);

// Plans for the user's approval. Needs COFFERDAM_PRESENT_PLAN. `mode` may be NULL.
bool cofferdam_present_plan(cofferdam_result *result, const char *plan, char **mode);

// Shows the first 200 characters of a line to the user. Needs no capability.
void cofferdam_report_progress(const char *format, ...) COFFERDAM_FORMAT(1);

#endif
