// Package cofferdam is the SDK for Cofferdam plugins in Go. Each tool is a function that takes
// an input and returns a result.
//
//	func init() {
//		cofferdam.Add(cofferdam.Tool{
//			Name:        "shout",
//			Description: "Converts a text to uppercase.",
//			InputSchema: `{"type": "object", …}`,
//			Call: cofferdam.Typed(func(input struct{ Text string }) (string, error) {
//				return strings.ToUpper(input.Text), nil
//			}),
//		})
//	}
//
// The workspace is the root directory, so os.ReadFile works for a tool with ReadFiles. The packages
// workspace, state, commands, agents, plans and progress call the host.
package cofferdam

import "encoding/json"

// Capability is a permission that a tool requests. Request as few as possible.
type Capability struct {
	Name       string
	Parameters []string
}

// The capabilities without parameters.
var (
	ReadFiles   = Capability{Name: "read-files"}
	WriteFiles  = Capability{Name: "write-files"}
	RunCommands = Capability{Name: "run-commands"}
	Delegate    = Capability{Name: "delegate"}
	KeepState   = Capability{Name: "keep-state"}
	PresentPlan = Capability{Name: "present-plan"}
)

// Fetch is the capability to send HTTP requests, such as Fetch("api.example.com", "GET docs.rs").
func Fetch(patterns ...string) Capability {
	return Capability{Name: "fetch", Parameters: patterns}
}

// Hint asks the host to treat a tool more strictly.
type Hint struct {
	Name       string
	Parameters []string
}

var (
	// Exclusive: never run the tool in parallel with another one.
	Exclusive = Hint{Name: "exclusive"}
	// Confirm: ask the user before every call.
	Confirm = Hint{Name: "confirm"}
)

// Tool is the declaration of a tool.
type Tool struct {
	Name string
	// Title is a short name for people. It may be empty.
	Title       string
	Description string
	// InputSchema is a JSON Schema of type `object`. The host validates each input against it.
	InputSchema string
	// OutputSchema is a JSON Schema of the structured result. It may be empty.
	OutputSchema string
	Capabilities []Capability
	Hints        []Hint
	// Annotations are names and values, which are encoded as JSON.
	Annotations map[string]any
	// Call takes the JSON text of an object that is valid under the input schema. See Typed.
	Call func(input string) (any, error)
}

var tools []Tool

// Add adds a tool to the plugin. Call it in an init function.
func Add(tool Tool) { tools = append(tools, tool) }

// Tools returns all tools in the order of Add.
func Tools() []Tool { return tools }

// Typed converts a function with a struct parameter to a Call.
//
// A result of type Output, Content or []Content is returned unchanged, and a string as text. Any
// other value is encoded as JSON: the structured result of a tool with an output schema, and the
// content otherwise.
func Typed[Input, Result any](call func(Input) (Result, error)) func(string) (any, error) {
	return func(text string) (any, error) {
		var input Input
		if err := json.Unmarshal([]byte(text), &input); err != nil {
			return nil, InvalidInput{Message: err.Error()}
		}
		return call(input)
	}
}

// InvalidInput means that the tool cannot use the input, although it is valid under the schema.
type InvalidInput struct {
	// Pointer is a JSON pointer (RFC 6901) into the input; empty for the whole input.
	Pointer, Message string
}

func (e InvalidInput) Error() string { return e.Message }

// NotFound means that the file or other object of the call does not exist. Errors that match
// fs.ErrNotExist have the same effect.
type NotFound struct{ Message string }

func (e NotFound) Error() string { return e.Message }

// TimedOut means that an operation took too long.
type TimedOut struct{ Message string }

func (e TimedOut) Error() string { return e.Message }

// Denied means that the host denied an action. Return it, so that the model and the user see the
// reason.
type Denied struct {
	Code, Reason string
	// Remedy is what would allow the action; it may be empty.
	Remedy string
}

func (e Denied) Error() string { return e.Reason }
