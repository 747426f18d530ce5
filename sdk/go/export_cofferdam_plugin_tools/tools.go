// Package export_cofferdam_plugin_tools is the export `cofferdam:plugin/tools`. The generated code
// expects it under this name.
package export_cofferdam_plugin_tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	types "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/cofferdam"
	wit "wit_component/cofferdam_plugin_tools"
)

// ListTools declares the tools.
func ListTools() []wit.Tool {
	var declared []wit.Tool
	for _, tool := range cofferdam.Tools() {
		var capabilities []wit.Capability
		for _, capability := range tool.Capabilities {
			capabilities = append(capabilities, wit.Capability(capability))
		}
		var hints []wit.Hint
		for _, hint := range tool.Hints {
			hints = append(hints, wit.Hint(hint))
		}
		annotations, err := annotationsOf(tool.Annotations)
		if err != nil {
			panic(fmt.Sprintf("the annotations of %s: %v", tool.Name, err))
		}
		declared = append(declared, wit.Tool{
			Name:         tool.Name,
			Title:        optional(tool.Title),
			Description:  tool.Description,
			InputSchema:  tool.InputSchema,
			OutputSchema: optional(tool.OutputSchema),
			Capabilities: capabilities,
			Hints:        hints,
			Annotations:  annotations,
		})
	}
	return declared
}

// CallTool calls a tool.
func CallTool(name string, input string) types.Result[wit.Output, wit.ToolError] {
	output, err := call(name, input)
	if err != nil {
		return types.Err[wit.Output, wit.ToolError](toolError(err))
	}
	return types.Ok[wit.Output, wit.ToolError](output)
}

func call(name, input string) (wit.Output, error) {
	for _, tool := range cofferdam.Tools() {
		if tool.Name != name {
			continue
		}
		result, err := tool.Call(input)
		if err != nil {
			return wit.Output{}, err
		}
		return outputOf(tool, result)
	}
	return wit.Output{}, cofferdam.NotFound{Message: fmt.Sprintf("this plugin has no tool %q", name)}
}

func outputOf(tool cofferdam.Tool, result any) (wit.Output, error) {
	output := wit.Output{Structured: types.None[string](), View: types.None[wit.Content]()}
	full, err := fullOutput(tool, result)
	if err != nil {
		return output, err
	}
	for _, piece := range full.Content {
		content, err := contentOf(piece)
		if err != nil {
			return output, err
		}
		output.Content = append(output.Content, content)
	}
	if tool.OutputSchema != "" {
		text, err := json.Marshal(full.Structured)
		if err != nil {
			return output, err
		}
		output.Structured = types.Some(string(text))
	}
	if full.View != nil {
		view, err := contentOf(*full.View)
		if err != nil {
			return output, err
		}
		output.View = types.Some(view)
	}
	output.Truncated = full.Truncated
	output.Annotations, err = annotationsOf(full.Annotations)
	return output, err
}

func fullOutput(tool cofferdam.Tool, result any) (cofferdam.Output, error) {
	switch result := result.(type) {
	case cofferdam.Output:
		return result, nil
	case cofferdam.Content:
		return cofferdam.Output{Content: []cofferdam.Content{result}}, nil
	case []cofferdam.Content:
		return cofferdam.Output{Content: result}, nil
	}
	if tool.OutputSchema != "" {
		return cofferdam.Output{Structured: result}, nil
	}
	if text, ok := result.(string); ok {
		return cofferdam.Output{Content: []cofferdam.Content{cofferdam.Text(text)}}, nil
	}
	content, err := cofferdam.JSON(result)
	return cofferdam.Output{Content: []cofferdam.Content{content}}, err
}

func contentOf(piece cofferdam.Content) (wit.Content, error) {
	body := wit.MakeBodyText(piece.Text)
	if piece.Bytes != nil {
		body = wit.MakeBodyBytes(piece.Bytes)
	}
	annotations, err := annotationsOf(piece.Annotations)
	return wit.Content{
		MediaType:   piece.MediaType,
		Body:        body,
		Uri:         optional(piece.URI),
		Annotations: annotations,
	}, err
}

func annotationsOf(values map[string]any) ([]wit.Annotation, error) {
	var annotations []wit.Annotation
	for name, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		annotations = append(annotations, wit.Annotation{Name: name, Value: string(text)})
	}
	return annotations, nil
}

func optional(text string) types.Option[string] {
	if text == "" {
		return types.None[string]()
	}
	return types.Some(text)
}

func toolError(err error) wit.ToolError {
	var invalid cofferdam.InvalidInput
	var missing cofferdam.NotFound
	var denied cofferdam.Denied
	var late cofferdam.TimedOut
	var path *fs.PathError
	switch {
	case errors.As(err, &invalid):
		problem := wit.InputProblem{Pointer: invalid.Pointer, Message: invalid.Message}
		return wit.MakeToolErrorInvalidInput(problem)
	case errors.As(err, &denied):
		denial := wit.Denial{Code: denied.Code, Reason: denied.Reason, Remedy: optional(denied.Remedy)}
		return wit.MakeToolErrorDenied(denial)
	case errors.As(err, &missing):
		return wit.MakeToolErrorNotFound(err.Error())
	case errors.As(err, &late):
		return wit.MakeToolErrorTimedOut(err.Error())
	case errors.As(err, &path):
		return fileError(path)
	default:
		return wit.MakeToolErrorFailed(err.Error())
	}
}

func fileError(err *fs.PathError) wit.ToolError {
	// Without the permission there is no workspace, and every path seems to be missing.
	if _, missing := os.Stat("."); missing != nil {
		return wit.MakeToolErrorFailed("this tool cannot read files: it lacks `read-files`")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return wit.MakeToolErrorNotFound(err.Path + " does not exist")
	}
	reason := err.Err.Error()
	// The result of reading a directory.
	if strings.Contains(reason, "is a directory") || strings.Contains(reason, "Bad file number") {
		return wit.MakeToolErrorFailed(err.Path + " is a directory")
	}
	return wit.MakeToolErrorFailed(err.Path + ": " + reason)
}
