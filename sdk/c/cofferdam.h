// What a Cofferdam plugin in C is made of: a table of tools, and functions that read their input and answer.
//
//     static void shout(const char *input, cofferdam_result *result) {
//       char *text = cofferdam_string(input, "text");
//       for (char *c = text; *c; c++) *c = toupper(*c);
//       cofferdam_answer(result, "%s", text);
//     }
//
//     const cofferdam_tool cofferdam_tools[] = {
//       {.name = "shout", .description = "Returns a text in capitals.", .schema = "{\"type\": \"object\", …}", .call = shout},
//       {0},
//     };
//
// Memory need not be freed: the instance is dropped after the call. The workspace is the root directory, so that
// `fopen("src/main.c", "r")` works for a tool that asks for COFFERDAM_READ_FILES.

#ifndef COFFERDAM_H
#define COFFERDAM_H

#include <stdbool.h>
#include <stddef.h>

// What a tool may ask for.
enum { COFFERDAM_READ_FILES = 1, COFFERDAM_WRITE_FILES = 2, COFFERDAM_RUN_COMMANDS = 4 };

// How a tool may want to be treated more strictly than its grants demand.
enum { COFFERDAM_EXCLUSIVE = 1, COFFERDAM_CONFIRM = 2 };

// Why a call did not do what was asked.
typedef enum { COFFERDAM_INVALID_INPUT, COFFERDAM_NOT_FOUND, COFFERDAM_FAILED } cofferdam_failure;

typedef struct cofferdam_result cofferdam_result;

typedef struct {
  const char *name;
  const char *description;
  // A JSON Schema of type `object`. The host validates every input against it.
  const char *schema;
  unsigned asks;
  unsigned hints;
  // `input` is the JSON text of an object that is valid under the schema.
  void (*call)(const char *input, cofferdam_result *result);
} cofferdam_tool;

// The plugin's tools; the last one has no name.
extern const cofferdam_tool cofferdam_tools[];

// Answers with a formatted text. The last answer or failure of a call counts.
void cofferdam_answer(cofferdam_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Fails, with a formatted text that the model can act on.
void cofferdam_fail(cofferdam_result *result, cofferdam_failure why, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Fails after `errno`, about a file.
void cofferdam_fail_on(cofferdam_result *result, const char *path);

// The string under a key of the input, as UTF-8; NULL if there is none.
char *cofferdam_string(const char *input, const char *key);

// The number under a key of the input, or else `otherwise`.
double cofferdam_number(const char *input, const char *key, double otherwise);

// The truth value under a key of the input, or else `otherwise`.
bool cofferdam_bool(const char *input, const char *key, bool otherwise);

// Whether a text is UTF-8 without NUL characters.
bool cofferdam_is_text(const char *bytes, size_t length);

// Reads a whole file, with a NUL after its end; NULL, with `errno` set, if it cannot.
char *cofferdam_read(const char *path, size_t *length);

#endif
