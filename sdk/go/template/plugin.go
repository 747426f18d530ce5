// Counts the lines of a file.
package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"wit_component/cofferdam"
)

type input struct{ Path, Containing string }

func init() {
	cofferdam.Add(cofferdam.Tool{
		Name:        "count_lines",
		Description: "Counts the lines of a text file, or those that contain a text.",
		Schema: `{
			"type": "object",
			"properties": {
				"path": {"type": "string", "format": "workspace-path", "description": "The file, relative to the workspace."},
				"containing": {"type": "string", "description": "Count only lines that contain this."}
			},
			"required": ["path"],
			"additionalProperties": false
		}`,
		Asks: []cofferdam.Ask{cofferdam.ReadFiles},
		Call: cofferdam.Typed(countLines),
	})
}

func countLines(input input) (string, error) {
	text, err := os.ReadFile(input.Path)
	if err != nil {
		return "", cofferdam.FileError(input.Path, err)
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
