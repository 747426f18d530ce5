// Files, and the input of a call.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cofferdam.h"
#include "cofferdam_internal.h"

// --- Files

char *cofferdam_read(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t capacity = 1 << 16, used = 0;
  char *bytes = malloc(capacity);
  while (bytes) {
    used += fread(bytes + used, 1, capacity - used - 1, file);
    if (used < capacity - 1) break;
    char *more = realloc(bytes, capacity *= 2);
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
    int more = first == 0      ? -1
               : first < 0x80 ? 0
               : first < 0xc2 ? -1
               : first < 0xe0 ? 1
               : first < 0xf0 ? 2
               : first < 0xf5 ? 3
                              : -1;
    if (more < 0 || end - at < more) return false;
    // The second byte excludes overlong forms, surrogates and numbers beyond Unicode.
    if (more > 0) {
      unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
      unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      if (*at < low || *at > high) return false;
    }
    for (; more > 0; more--)
      if ((*at++ & 0xc0) != 0x80) return false;
  }
  return true;
}

// --- Input. The host has checked that it is a JSON object.

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

// Returns the text of a JSON string. It is never longer than its JSON.
static char *decode(const char *at) {
  const char *end = skip_string(at);
  char *text = cofferdam_alloc((size_t)(end - at) + 1), *to = text;
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

// Returns the start of the value under a key; NULL if there is none.
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

double cofferdam_number(const char *input, const char *key, double fallback) {
  const char *at = find(input, key);
  return at && strchr("-0123456789", *at) ? strtod(at, NULL) : fallback;
}

bool cofferdam_bool(const char *input, const char *key, bool fallback) {
  const char *at = find(input, key);
  return at && (*at == 't' || *at == 'f') ? *at == 't' : fallback;
}
