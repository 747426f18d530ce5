// Package http sends HTTP requests. It needs cofferdam.Fetch.
//
//	response, err := http.Send(http.Request{Method: "GET", URL: "https://api.example.com/items"})
package http

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	types "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/cofferdam"
	handler "wit_component/wasi_http_outgoing_handler"
	host "wit_component/wasi_http_types"
	streams "wit_component/wasi_io_streams"
)

// DefaultMaxBytes is the default limit for the body of a response, in bytes.
const DefaultMaxBytes = 8 << 20

// The maximum number of bytes that a stream accepts in one call.
const bytesPerWrite = 4096

// Header is the name and the value of a header. A name can occur more than once.
type Header struct{ Name, Value string }

// Request is an HTTP request.
type Request struct {
	// Method is a method such as GET. The default is GET.
	Method  string
	URL     string
	Headers []Header
	Body    []byte
	// Timeout is the maximum time without data from the server. 0 means the limit of the host.
	Timeout time.Duration
	// MaxBytes is the maximum size of the response body in bytes; 0 means DefaultMaxBytes.
	MaxBytes int
}

// Response is the response of a server, which can have an error status.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte
	// Complete is false if Body is truncated.
	Complete bool
}

// Header returns the first header with a name, ignoring case.
func (r Response) Header(name string) string {
	for _, header := range r.Headers {
		if strings.EqualFold(header.Name, name) {
			return header.Value
		}
	}
	return ""
}

// Send sends a request and reads the response. A redirect is a response; follow it with another
// request.
func Send(request Request) (Response, error) {
	outgoing, body, err := prepare(request)
	if err != nil {
		return Response{}, err
	}
	options := types.None[*host.RequestOptions]()
	if request.Timeout > 0 {
		limits := host.MakeRequestOptions()
		limits.SetFirstByteTimeout(types.Some(uint64(request.Timeout)))
		limits.SetBetweenBytesTimeout(types.Some(uint64(request.Timeout)))
		options = types.Some(limits)
	}
	pending := handler.Handle(outgoing, options)
	if pending.IsErr() {
		return Response{}, failure(pending.Err())
	}
	if body != nil {
		if err := write(body, request.Body); err != nil {
			return Response{}, err
		}
	}
	pending.Ok().Subscribe().Block()
	answer := pending.Ok().Get()
	if answer.IsNone() || answer.Some().IsErr() {
		return Response{}, errors.New("there is no response")
	}
	incoming := answer.Some().Ok()
	if incoming.IsErr() {
		return Response{}, failure(incoming.Err())
	}
	limit := request.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	return read(incoming.Ok(), limit)
}

func prepare(request Request) (*host.OutgoingRequest, *host.OutgoingBody, error) {
	invalid := func(format string, values ...any) error {
		return cofferdam.InvalidInput{Message: fmt.Sprintf(format, values...)}
	}
	address, err := url.Parse(request.URL)
	if err != nil {
		return nil, nil, invalid("%v", err)
	}
	scheme := host.MakeSchemeHttps()
	if address.Scheme == "http" {
		scheme = host.MakeSchemeHttp()
	} else if address.Scheme != "https" {
		return nil, nil, invalid("%s does not begin with `https://` or `http://`", request.URL)
	}
	fields := host.MakeFields()
	for _, header := range request.Headers {
		if fields.Append(header.Name, []byte(header.Value)).IsErr() {
			return nil, nil, invalid("the header %s cannot be sent", header.Name)
		}
	}
	outgoing := host.MakeOutgoingRequest(fields)
	refused := outgoing.SetMethod(method(request.Method)).IsErr() ||
		outgoing.SetScheme(types.Some(scheme)).IsErr() ||
		outgoing.SetAuthority(types.Some(address.Host)).IsErr() ||
		outgoing.SetPathWithQuery(types.Some(address.RequestURI())).IsErr()
	if refused {
		return nil, nil, invalid("a request of %s %s cannot be sent", request.Method, request.URL)
	}
	if len(request.Body) == 0 {
		return outgoing, nil, nil
	}
	body := outgoing.Body()
	if body.IsErr() {
		return nil, nil, invalid("the request cannot have a body")
	}
	return outgoing, body.Ok(), nil
}

func method(name string) host.Method {
	switch name {
	case "", "GET":
		return host.MakeMethodGet()
	case "HEAD":
		return host.MakeMethodHead()
	case "POST":
		return host.MakeMethodPost()
	case "PUT":
		return host.MakeMethodPut()
	case "DELETE":
		return host.MakeMethodDelete()
	case "OPTIONS":
		return host.MakeMethodOptions()
	case "PATCH":
		return host.MakeMethodPatch()
	}
	return host.MakeMethodOther(name)
}

func write(body *host.OutgoingBody, data []byte) error {
	stream := body.Write()
	if stream.IsErr() {
		return errors.New("the body of the request cannot be sent")
	}
	for len(data) > 0 {
		size := min(len(data), bytesPerWrite)
		if result := stream.Ok().BlockingWriteAndFlush(data[:size]); result.IsErr() {
			return errors.New("the body of the request cannot be sent")
		}
		data = data[size:]
	}
	stream.Ok().Drop()
	if result := host.OutgoingBodyFinish(body, types.None[*host.Fields]()); result.IsErr() {
		return failure(result.Err())
	}
	return nil
}

func read(incoming *host.IncomingResponse, limit int) (Response, error) {
	response := Response{Status: int(incoming.Status())}
	for _, entry := range incoming.Headers().Entries() {
		response.Headers = append(response.Headers, Header{entry.F0, string(entry.F1)})
	}
	body := incoming.Consume()
	if body.IsErr() {
		return response, errors.New("the response has no body")
	}
	stream := body.Ok().Stream()
	if stream.IsErr() {
		return response, errors.New("the response has no body")
	}
	for len(response.Body) <= limit {
		chunk := stream.Ok().BlockingRead(uint64(limit + 1 - len(response.Body)))
		if chunk.IsOk() {
			response.Body = append(response.Body, chunk.Ok()...)
			continue
		}
		if problem := chunk.Err(); problem.Tag() == streams.StreamError_LastOperationFailed {
			return response, errors.New(problem.LastOperationFailed().ToDebugString())
		}
		break
	}
	response.Complete = len(response.Body) <= limit
	response.Body = response.Body[:min(len(response.Body), limit)]
	return response, nil
}

func failure(code host.ErrorCode) error {
	switch code.Tag() {
	case host.ErrorCode_DnsTimeout, host.ErrorCode_ConnectionTimeout,
		host.ErrorCode_ConnectionReadTimeout, host.ErrorCode_HttpResponseTimeout:
		return cofferdam.TimedOut{Message: "the server was silent for too long"}
	case host.ErrorCode_InternalError:
		text := code.InternalError().SomeOr("the request failed")
		if rest, denied := strings.CutPrefix(text, "denied ("); denied {
			name, reason, _ := strings.Cut(rest, "): ")
			return cofferdam.Denied{Code: name, Reason: reason}
		}
		return errors.New(text)
	}
	return fmt.Errorf("the request failed with code %d of wasi:http", code.Tag())
}
