// The interfaces of the host. The linker drops what a plugin does not use, and its imports with it.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cofferdam.h"
#include "cofferdam_internal.h"

static const uint64_t SECOND = 1000000000;

static char *text_of(bindings_string_t string) {
  return cofferdam_terminate(string.ptr, string.len);
}

static bool fail(cofferdam_result *result, cofferdam_error error, bindings_string_t message) {
  cofferdam_fail(result, error, "%s", text_of(message));
  return false;
}

static bool deny(cofferdam_result *result, cofferdam_plugin_types_denial_t denial) {
  cofferdam_deny(result, denial);
  return false;
}

static char **texts_of(bindings_list_string_t list) {
  char **texts = cofferdam_alloc((list.len + 1) * sizeof *texts);
  for (size_t i = 0; i < list.len; i++) texts[i] = text_of(list.ptr[i]);
  return texts;
}

static struct timespec time_of(uint64_t nanoseconds) {
  return (struct timespec){.tv_sec = (time_t)(nanoseconds / SECOND),
                           .tv_nsec = (long)(nanoseconds % SECOND)};
}

// --- State

static bool state_error(cofferdam_result *result, cofferdam_plugin_state_state_error_t *error) {
  if (error->tag == COFFERDAM_PLUGIN_STATE_STATE_ERROR_DENIED)
    return deny(result, error->val.denied);
  return fail(result, COFFERDAM_FAILED, error->val.full);
}

bool cofferdam_state_get(cofferdam_result *result, const char *key, char **value, size_t *length) {
  bindings_string_t name = cofferdam_copy(key);
  bindings_option_list_u8_t found;
  cofferdam_plugin_state_state_error_t error;
  if (!cofferdam_plugin_state_get(&name, &found, &error)) return state_error(result, &error);
  *value = found.is_some ? cofferdam_terminate(found.val.ptr, found.val.len) : NULL;
  if (length) *length = found.is_some ? found.val.len : 0;
  return true;
}

bool cofferdam_state_set(cofferdam_result *result, const char *key, const void *value,
                         size_t length) {
  bindings_string_t name = cofferdam_copy(key);
  bindings_list_u8_t bytes = {(uint8_t *)cofferdam_terminate(value, length), length};
  cofferdam_plugin_state_state_error_t error;
  if (!cofferdam_plugin_state_set(&name, &bytes, &error)) return state_error(result, &error);
  return true;
}

bool cofferdam_state_set_text(cofferdam_result *result, const char *key, const char *text) {
  return cofferdam_state_set(result, key, text, strlen(text));
}

bool cofferdam_state_delete(cofferdam_result *result, const char *key) {
  bindings_string_t name = cofferdam_copy(key);
  cofferdam_plugin_state_state_error_t error;
  if (!cofferdam_plugin_state_delete(&name, &error)) return state_error(result, &error);
  return true;
}

bool cofferdam_state_keys(cofferdam_result *result, char ***keys) {
  bindings_list_string_t list;
  cofferdam_plugin_state_state_error_t error;
  if (!cofferdam_plugin_state_keys(&list, &error)) return state_error(result, &error);
  *keys = texts_of(list);
  return true;
}

// --- Walks

struct cofferdam_walk {
  cofferdam_plugin_workspace_own_walk_t handle;
  cofferdam_plugin_workspace_list_entry_t entries;
  size_t next_entry;
  cofferdam_plugin_workspace_batch_t batch;
  size_t next_piece;
  size_t offset;
};

// The number of entries, and the bytes of files, in one call of the host.
enum { ENTRIES = 1024, BATCH_BYTES = 1 << 20 };

static bool walk_error(cofferdam_result *result,
                       cofferdam_plugin_workspace_workspace_error_t *error) {
  switch (error->tag) {
    case COFFERDAM_PLUGIN_WORKSPACE_WORKSPACE_ERROR_DENIED: return deny(result, error->val.denied);
    case COFFERDAM_PLUGIN_WORKSPACE_WORKSPACE_ERROR_NOT_FOUND:
      return fail(result, COFFERDAM_NOT_FOUND, error->val.not_found);
    case COFFERDAM_PLUGIN_WORKSPACE_WORKSPACE_ERROR_INVALID_GLOB:
      return fail(result, COFFERDAM_INVALID_INPUT, error->val.invalid_glob);
    default: return fail(result, COFFERDAM_FAILED, error->val.failed);
  }
}

static bindings_list_string_t list_of(const char *const *texts) {
  bindings_list_string_t list = {NULL, 0};
  while (texts && texts[list.len]) list.len++;
  list.ptr = cofferdam_alloc(list.len * sizeof *list.ptr);
  for (size_t i = 0; i < list.len; i++) list.ptr[i] = cofferdam_copy(texts[i]);
  return list;
}

bool cofferdam_walk_open(cofferdam_result *result, const cofferdam_walk_options *options,
                         cofferdam_walk **walk) {
  bindings_list_string_t required = list_of(options->required);
  cofferdam_plugin_workspace_walk_options_t sent = {
      .root = cofferdam_copy(options->root),
      .globs = list_of(options->globs),
      .hidden = options->hidden,
      .respect_ignore = !options->no_ignore,
      .max_depth = {.is_some = options->max_depth > 0, .val = options->max_depth},
      // Strings and byte strings have the same layout.
      .required = {(bindings_list_u8_t *)required.ptr, required.len},
      .required_ignore_case = options->required_ignore_case,
  };
  cofferdam_walk *opened = cofferdam_alloc(sizeof *opened);
  cofferdam_plugin_workspace_workspace_error_t error;
  if (!cofferdam_plugin_workspace_open_walk(&sent, &opened->handle, &error))
    return walk_error(result, &error);
  *walk = opened;
  return true;
}

bool cofferdam_walk_entry(cofferdam_result *result, cofferdam_walk *walk, cofferdam_entry *entry) {
  *entry = (cofferdam_entry){0};
  if (walk->next_entry == walk->entries.len) {
    cofferdam_plugin_workspace_list_entry_free(&walk->entries);
    walk->entries = (cofferdam_plugin_workspace_list_entry_t){0};
    walk->next_entry = 0;
    cofferdam_plugin_workspace_workspace_error_t error;
    if (!cofferdam_plugin_workspace_method_walk_next_entries(
            cofferdam_plugin_workspace_borrow_walk(walk->handle), ENTRIES, &walk->entries, &error))
      return walk_error(result, &error);
    if (!walk->entries.len) return true;
  }
  cofferdam_plugin_workspace_entry_t *next = &walk->entries.ptr[walk->next_entry++];
  entry->path = text_of(next->path);
  entry->kind = (cofferdam_entry_kind)next->kind;
  entry->size = next->size;
  if (next->modified.is_some) {
    entry->modified.tv_sec = (time_t)next->modified.val.seconds;
    entry->modified.tv_nsec = (long)next->modified.val.nanoseconds;
  }
  return true;
}

bool cofferdam_walk_file(cofferdam_result *result, cofferdam_walk *walk, cofferdam_file *file) {
  *file = (cofferdam_file){0};
  for (bool more = true; more;) {
    if (walk->next_piece == walk->batch.pieces.len) {
      cofferdam_plugin_workspace_batch_free(&walk->batch);
      walk->batch = (cofferdam_plugin_workspace_batch_t){0};
      walk->next_piece = walk->offset = 0;
      cofferdam_plugin_workspace_workspace_error_t error;
      if (!cofferdam_plugin_workspace_method_walk_next_files(
              cofferdam_plugin_workspace_borrow_walk(walk->handle), BATCH_BYTES, &walk->batch,
              &error))
        return walk_error(result, &error);
      if (!walk->batch.pieces.len) return true;
    }
    cofferdam_plugin_workspace_file_piece_t *piece = &walk->batch.pieces.ptr[walk->next_piece++];
    char *data = realloc(file->data, file->length + piece->length + 1);
    if (!data) abort();
    const uint8_t *from = walk->batch.data.ptr + walk->offset;
    if (piece->length) memcpy(data + file->length, from, piece->length);
    walk->offset += piece->length;
    file->length += piece->length;
    data[file->length] = 0;
    file->data = data;
    if (!file->path) file->path = text_of(piece->path);
    more = piece->more;
  }
  return true;
}

char **cofferdam_walk_problems(cofferdam_walk *walk) {
  bindings_list_string_t list;
  cofferdam_plugin_workspace_method_walk_problems(
      cofferdam_plugin_workspace_borrow_walk(walk->handle), &list);
  return texts_of(list);
}

void cofferdam_walk_close(cofferdam_walk *walk) {
  cofferdam_plugin_workspace_walk_drop_own(walk->handle);
}

// --- Commands

bool cofferdam_run(cofferdam_result *result, const char *line, const char *directory,
                   struct timespec timeout, cofferdam_command_output *output) {
  cofferdam_plugin_commands_command_t command = {
      .line = cofferdam_copy(line),
      .directory = cofferdam_copy(directory),
      .timeout = (uint64_t)timeout.tv_sec * SECOND + (uint64_t)timeout.tv_nsec,
  };
  cofferdam_plugin_commands_command_output_t got;
  cofferdam_plugin_commands_command_error_t error;
  if (!cofferdam_plugin_commands_run(&command, &got, &error)) {
    switch (error.tag) {
      case COFFERDAM_PLUGIN_COMMANDS_COMMAND_ERROR_DENIED: return deny(result, error.val.denied);
      case COFFERDAM_PLUGIN_COMMANDS_COMMAND_ERROR_INVALID:
        return fail(result, COFFERDAM_INVALID_INPUT, error.val.invalid);
      default: return fail(result, COFFERDAM_FAILED, error.val.failed);
    }
  }
  bool exited = got.status.tag == COFFERDAM_PLUGIN_COMMANDS_EXIT_STATUS_EXITED;
  bool signaled = got.status.tag == COFFERDAM_PLUGIN_COMMANDS_EXIT_STATUS_SIGNALED;
  *output = (cofferdam_command_output){
      .exit_code = exited ? got.status.val.exited : -1,
      .signal = signaled ? got.status.val.signaled : 0,
      .timed_out = got.status.tag == COFFERDAM_PLUGIN_COMMANDS_EXIT_STATUS_TIMED_OUT,
      .stdout_text = text_of(got.stdout_),
      .stderr_text = text_of(got.stderr_),
      .elapsed = time_of(got.elapsed),
  };
  return true;
}

// --- Sub-agents, plans and progress

bool cofferdam_delegate(cofferdam_result *result, const char *task, char **answer,
                        bool *complete) {
  bindings_string_t text = cofferdam_copy(task);
  cofferdam_plugin_agents_answer_t got;
  cofferdam_plugin_agents_agent_error_t error;
  if (!cofferdam_plugin_agents_delegate(&text, &got, &error)) {
    switch (error.tag) {
      case COFFERDAM_PLUGIN_AGENTS_AGENT_ERROR_DENIED: return deny(result, error.val.denied);
      case COFFERDAM_PLUGIN_AGENTS_AGENT_ERROR_INVALID:
        return fail(result, COFFERDAM_INVALID_INPUT, error.val.invalid);
      default: return fail(result, COFFERDAM_FAILED, error.val.failed.message);
    }
  }
  *answer = text_of(got.text);
  if (complete) *complete = got.complete;
  return true;
}

bool cofferdam_present_plan(cofferdam_result *result, const char *plan, char **mode) {
  bindings_string_t text = cofferdam_copy(plan), got;
  cofferdam_plugin_plans_plan_error_t error;
  if (!cofferdam_plugin_plans_present(&text, &got, &error)) {
    if (error.tag == COFFERDAM_PLUGIN_PLANS_PLAN_ERROR_DENIED)
      return deny(result, error.val.denied);
    return fail(result, COFFERDAM_INVALID_INPUT, error.val.invalid);
  }
  if (mode) *mode = text_of(got);
  return true;
}

void cofferdam_report_progress(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text;
  if (vasprintf(&text, format, arguments) < 0) abort();
  va_end(arguments);
  bindings_string_t message = cofferdam_copy(text);
  cofferdam_plugin_progress_report(&message);
}
