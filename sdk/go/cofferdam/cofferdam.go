// Package cofferdam is what a Cofferdam plugin in Go is made of: tools, each a function from its input to an answer.
//
//	func init() {
//		cofferdam.Add(cofferdam.Tool{
//			Name:        "shout",
//			Description: "Returns a text in capitals.",
//			Schema:      `{"type": "object", …}`,
//			Call: cofferdam.Typed(func(input struct{ Text string }) (string, error) {
//				return strings.ToUpper(input.Text), nil
//			}),
//		})
//	}
//
// The workspace is the root directory, so that os.ReadFile works for a tool that asks for ReadFiles.
package cofferdam

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Ask is something that a tool may ask for.
type Ask int

const (
	ReadFiles Ask = iota
	WriteFiles
	RunCommands
)

// Tool is one tool.
type Tool struct {
	Name        string
	Description string
	// A JSON Schema of type `object`. The host validates every input against it.
	Schema string
	Asks   []Ask
	// Exclusive: never beside another call. Confirm: ask the user before every call.
	Exclusive, Confirm bool
	// Call takes the JSON text of an object that is valid under the schema.
	Call func(input string) (string, error)
}

// Tools are those that were added, in order.
var Tools []Tool

// Add makes a tool part of the plugin; call it from an init function.
func Add(tool Tool) { Tools = append(Tools, tool) }

// InvalidInput: the input fits the schema and still makes no sense. Pointer is a JSON pointer into it.
type InvalidInput struct{ Pointer, Message string }

func (e InvalidInput) Error() string { return e.Message }

// NotFound: what the call is about does not exist.
type NotFound string

func (e NotFound) Error() string { return string(e) }

// Typed makes a Call of a function that takes its input as a struct.
func Typed[Input any](call func(Input) (string, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		var input Input
		if err := json.Unmarshal([]byte(text), &input); err != nil {
			return "", InvalidInput{"", err.Error()}
		}
		return call(input)
	}
}

// FileError says what went wrong with a file in words for a model.
func FileError(path string, err error) error {
	// Without the permission there is no workspace, and every path looks as if nothing were there.
	if _, missing := os.Stat("."); missing != nil {
		return errors.New("this tool may not read files; it would have to ask for `read-files`")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return NotFound(path + " does not exist")
	}
	// Reading a directory as a file comes to this.
	if strings.Contains(err.Error(), "is a directory") || strings.Contains(err.Error(), "Bad file number") {
		return fmt.Errorf("%s is a directory", path)
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
