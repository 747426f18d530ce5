// HTTP requests through `wasi:http`.

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cofferdam.h"
#include "cofferdam_internal.h"

// The number of bytes that a stream takes in one call.
enum { PIECE = 4096, DEFAULT_MAX_BYTES = 8 << 20 };

static char *text_of(bindings_string_t string) {
  return cofferdam_terminate(string.ptr, string.len);
}

static bool failed(cofferdam_result *result, const char *message) {
  cofferdam_fail(result, COFFERDAM_FAILED, "%s", message);
  return false;
}

static bool request_error(cofferdam_result *result, wasi_http_types_error_code_t *code) {
  static const char DENIED[] = "denied (";
  switch (code->tag) {
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_READ_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_TIMEOUT:
      cofferdam_fail(result, COFFERDAM_TIMED_OUT, "the server was silent for too long");
      return false;
    case WASI_HTTP_TYPES_ERROR_CODE_INTERNAL_ERROR: break;
    default:
      cofferdam_fail(result, COFFERDAM_FAILED, "the request failed with code %d of wasi:http",
                     code->tag);
      return false;
  }
  char *text = code->val.internal_error.is_some ? text_of(code->val.internal_error.val) : "";
  char *end = strstr(text, "): ");
  if (strncmp(text, DENIED, strlen(DENIED)) != 0 || !end) return failed(result, text);
  *end = 0;
  cofferdam_deny(result, (cofferdam_plugin_types_denial_t){
                             .code = cofferdam_copy(text + strlen(DENIED)),
                             .reason = cofferdam_copy(end + strlen("): ")),
                         });
  return false;
}

static wasi_http_types_method_t method_of(const char *name) {
  static const char *const names[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                      "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  wasi_http_types_method_t method = {.tag = WASI_HTTP_TYPES_METHOD_GET};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!name || strcmp(name, names[i]) == 0) {
      method.tag = (uint8_t)(name ? i : 0);
      return method;
    }
  method.tag = WASI_HTTP_TYPES_METHOD_OTHER;
  method.val.other = cofferdam_copy(name);
  return method;
}

static bool write_body(cofferdam_result *result, wasi_http_types_own_outgoing_body_t body,
                       const cofferdam_request *request) {
  wasi_http_types_own_output_stream_t stream;
  if (!wasi_http_types_method_outgoing_body_write(wasi_http_types_borrow_outgoing_body(body),
                                                  &stream))
    return failed(result, "the body of the request cannot be sent");
  for (size_t at = 0; at < request->body_length; at += PIECE) {
    size_t left = request->body_length - at;
    size_t length = left < PIECE ? left : PIECE;
    const uint8_t *from = (const uint8_t *)request->body + at;
    bindings_list_u8_t piece = {(uint8_t *)cofferdam_terminate(from, length), length};
    wasi_io_streams_stream_error_t error;
    if (!wasi_io_streams_method_output_stream_blocking_write_and_flush(
            wasi_io_streams_borrow_output_stream(stream), &piece, &error))
      return failed(result, "the body of the request cannot be sent");
  }
  wasi_io_streams_output_stream_drop_own(stream);
  wasi_http_types_error_code_t code;
  if (!wasi_http_types_static_outgoing_body_finish(body, NULL, &code))
    return request_error(result, &code);
  return true;
}

static bool read_response(cofferdam_result *result,
                          wasi_http_types_own_incoming_response_t incoming, size_t limit,
                          cofferdam_response *response) {
  wasi_http_types_borrow_incoming_response_t head =
      wasi_http_types_borrow_incoming_response(incoming);
  response->status = wasi_http_types_method_incoming_response_status(head);
  wasi_http_types_own_fields_t fields = wasi_http_types_method_incoming_response_headers(head);
  wasi_http_types_list_tuple2_field_key_field_value_t entries;
  wasi_http_types_method_fields_entries(wasi_http_types_borrow_fields(fields), &entries);
  response->headers = cofferdam_alloc((2 * entries.len + 1) * sizeof *response->headers);
  for (size_t i = 0; i < entries.len; i++) {
    response->headers[2 * i] = text_of(entries.ptr[i].f0);
    response->headers[2 * i + 1] =
        cofferdam_terminate(entries.ptr[i].f1.ptr, entries.ptr[i].f1.len);
  }
  wasi_http_types_own_incoming_body_t body;
  wasi_http_types_own_input_stream_t stream;
  if (!wasi_http_types_method_incoming_response_consume(head, &body) ||
      !wasi_http_types_method_incoming_body_stream(wasi_http_types_borrow_incoming_body(body),
                                                   &stream))
    return failed(result, "the response has no body");
  response->body = cofferdam_alloc(1);
  response->length = 0;
  while (response->length <= limit) {
    bindings_list_u8_t chunk;
    wasi_io_streams_stream_error_t error;
    if (!wasi_io_streams_method_input_stream_blocking_read(
            wasi_io_streams_borrow_input_stream(stream), limit + 1 - response->length, &chunk,
            &error)) {
      if (error.tag == WASI_IO_STREAMS_STREAM_ERROR_CLOSED) break;
      return failed(result, "the response ended too early");
    }
    char *more = realloc(response->body, response->length + chunk.len + 1);
    if (!more) abort();
    if (chunk.len) memcpy(more + response->length, chunk.ptr, chunk.len);
    response->body = more;
    response->length += chunk.len;
    bindings_list_u8_free(&chunk);
  }
  response->complete = response->length <= limit;
  if (!response->complete) response->length = limit;
  response->body[response->length] = 0;
  return true;
}

bool cofferdam_fetch(cofferdam_result *result, const cofferdam_request *request,
                     cofferdam_response *response) {
  *response = (cofferdam_response){0};
  bool is_http = strncmp(request->url, "http://", 7) == 0;
  if (!is_http && strncmp(request->url, "https://", 8) != 0) {
    cofferdam_fail(result, COFFERDAM_INVALID_INPUT,
                   "%s does not begin with `https://` or `http://`", request->url);
    return false;
  }
  char *authority = strdup(request->url + (is_http ? 7 : 8));
  authority[strcspn(authority, "#")] = 0;
  size_t length = strcspn(authority, "/?");
  char *path = cofferdam_alloc(strlen(authority) + 2);
  strcpy(path, authority[length] == '/' ? "" : "/");
  strcat(path, authority + length);
  authority[length] = 0;

  wasi_http_types_own_fields_t fields = wasi_http_types_constructor_fields();
  for (const char *const *header = request->headers; header && *header; header += 2) {
    bindings_string_t name = cofferdam_copy(header[0]), value = cofferdam_copy(header[1]);
    wasi_http_types_field_value_t bytes = {value.ptr, value.len};
    wasi_http_types_header_error_t error;
    if (!wasi_http_types_method_fields_append(wasi_http_types_borrow_fields(fields), &name, &bytes,
                                              &error)) {
      cofferdam_fail(result, COFFERDAM_INVALID_INPUT, "the header %s cannot be sent", header[0]);
      return false;
    }
  }
  wasi_http_types_own_outgoing_request_t outgoing =
      wasi_http_types_constructor_outgoing_request(fields);
  wasi_http_types_borrow_outgoing_request_t head =
      wasi_http_types_borrow_outgoing_request(outgoing);
  wasi_http_types_method_t method = method_of(request->method);
  wasi_http_types_scheme_t scheme = {.tag = is_http ? WASI_HTTP_TYPES_SCHEME_HTTP
                                                    : WASI_HTTP_TYPES_SCHEME_HTTPS};
  bindings_string_t host = cofferdam_copy(authority), rest = cofferdam_copy(path);
  wasi_http_types_own_outgoing_body_t body;
  if (!wasi_http_types_method_outgoing_request_set_method(head, &method) ||
      !wasi_http_types_method_outgoing_request_set_scheme(head, &scheme) ||
      !wasi_http_types_method_outgoing_request_set_authority(head, &host) ||
      !wasi_http_types_method_outgoing_request_set_path_with_query(head, &rest) ||
      (request->body_length && !wasi_http_types_method_outgoing_request_body(head, &body))) {
    cofferdam_fail(result, COFFERDAM_INVALID_INPUT, "a request of %s cannot be sent", request->url);
    return false;
  }
  wasi_http_types_own_future_incoming_response_t pending;
  wasi_http_types_error_code_t code;
  if (!wasi_http_outgoing_handler_handle(outgoing, NULL, &pending, &code))
    return request_error(result, &code);
  if (request->body_length && !write_body(result, body, request)) return false;
  wasi_http_types_borrow_future_incoming_response_t future =
      wasi_http_types_borrow_future_incoming_response(pending);
  wasi_io_poll_method_pollable_block(wasi_io_poll_borrow_pollable(
      wasi_http_types_method_future_incoming_response_subscribe(future)));
  wasi_http_types_result_result_own_incoming_response_error_code_void_t answer;
  if (!wasi_http_types_method_future_incoming_response_get(future, &answer) || answer.is_err)
    return failed(result, "there is no response");
  if (answer.val.ok.is_err) return request_error(result, &answer.val.ok.val.err);
  size_t limit = request->max_bytes ? request->max_bytes : DEFAULT_MAX_BYTES;
  return read_response(result, answer.val.ok.val.ok, limit, response);
}

const char *cofferdam_header(const cofferdam_response *response, const char *name) {
  for (char **header = response->headers; *header; header += 2)
    if (strcasecmp(header[0], name) == 0) return header[1];
  return NULL;
}
