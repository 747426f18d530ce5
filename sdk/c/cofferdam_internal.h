// Functions that the files of the SDK share.

#ifndef COFFERDAM_INTERNAL_H
#define COFFERDAM_INTERNAL_H

#include "bindings.h"
#include "cofferdam.h"

// Returns zeroed memory, or ends the plugin.
void *cofferdam_alloc(size_t size);

bindings_string_t cofferdam_copy(const char *text);

// Returns a copy with a NUL after its end.
char *cofferdam_terminate(const uint8_t *bytes, size_t length);

// Fails with a denial of the host.
void cofferdam_deny(cofferdam_result *result, cofferdam_plugin_types_denial_t denial);

#endif
