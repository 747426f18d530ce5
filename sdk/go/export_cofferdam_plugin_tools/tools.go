// Package export_cofferdam_plugin_tools is the export `cofferdam:plugin/tools`; the generated code looks for it here.
package export_cofferdam_plugin_tools

import (
	"errors"
	"fmt"

	types "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/cofferdam"
	wit "wit_component/cofferdam_plugin_tools"
)

// ListTools declares the tools.
func ListTools() []wit.Tool {
	var declared []wit.Tool
	for _, tool := range cofferdam.Tools {
		var asks []wit.Capability
		for _, ask := range tool.Asks {
			switch ask {
			case cofferdam.ReadFiles:
				asks = append(asks, wit.MakeCapabilityReadFiles())
			case cofferdam.WriteFiles:
				asks = append(asks, wit.MakeCapabilityWriteFiles())
			case cofferdam.RunCommands:
				asks = append(asks, wit.MakeCapabilityRunCommands())
			}
		}
		var hints wit.Hints
		if tool.Exclusive {
			hints |= wit.Hints_Exclusive
		}
		if tool.Confirm {
			hints |= wit.Hints_Confirm
		}
		declared = append(declared, wit.Tool{Name: tool.Name, Description: tool.Description, InputSchema: tool.Schema, Capabilities: asks, Hints: hints})
	}
	return declared
}

// CallTool calls a tool.
func CallTool(name string, input string) types.Result[wit.Output, wit.ToolError] {
	for _, tool := range cofferdam.Tools {
		if tool.Name != name {
			continue
		}
		text, err := tool.Call(input)
		if err != nil {
			return types.Err[wit.Output, wit.ToolError](problem(err))
		}
		content := []wit.Content{wit.MakeContentText(text)}
		return types.Ok[wit.Output, wit.ToolError](wit.Output{Content: content, View: types.None[wit.View]()})
	}
	return types.Err[wit.Output, wit.ToolError](wit.MakeToolErrorNotFound(fmt.Sprintf("this plugin has no tool %q", name)))
}

func problem(err error) wit.ToolError {
	var invalid cofferdam.InvalidInput
	var missing cofferdam.NotFound
	switch {
	case errors.As(err, &invalid):
		return wit.MakeToolErrorInvalidInput(wit.InputProblem{Pointer: invalid.Pointer, Message: invalid.Message})
	case errors.As(err, &missing):
		return wit.MakeToolErrorNotFound(string(missing))
	default:
		return wit.MakeToolErrorFailed(err.Error())
	}
}
