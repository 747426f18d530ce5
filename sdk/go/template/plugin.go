// Counts the lines of a file.
package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"wit_component/cofferdam"
)

func init() {
	cofferdam.Add(cofferdam.Tool{
		Name:        "count_lines",
		Title:       "Count lines",
		Description: "Counts the lines of a text file, or the lines that contain a string.",
		InputSchema: `{
			"type": "object",
			"properties": {
				"path": {"type": "string", "format": "workspace-path",
					"description": "The file, relative to the workspace."},
				"containing": {"type": "string",
					"description": "Count only lines with this string."}
			},
			"required": ["path"],
			"additionalProperties": false
		}`,
		Capabilities: []cofferdam.Capability{cofferdam.ReadFiles},
		Call:         cofferdam.Typed(countLines),
	})
}

func countLines(input struct{ Path, Containing string }) (string, error) {
	text, err := os.ReadFile(input.Path)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("%s is not text", input.Path)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, input.Containing) {
			lines++
		}
	}
	return fmt.Sprint(lines), nil
}
