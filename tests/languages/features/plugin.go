// Uses every part of the SDK.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"wit_component/cofferdam"
	"wit_component/cofferdam/agents"
	"wit_component/cofferdam/commands"
	"wit_component/cofferdam/http"
	"wit_component/cofferdam/plans"
	"wit_component/cofferdam/progress"
	"wit_component/cofferdam/state"
	"wit_component/cofferdam/workspace"
)

const nothing = `{"type": "object", "additionalProperties": false}`

type none struct{}

func init() {
	type capability = cofferdam.Capability
	add := func(name, description string, needed capability, call func(none) (string, error)) {
		cofferdam.Add(cofferdam.Tool{
			Name:         name,
			Description:  description,
			InputSchema:  nothing,
			Capabilities: []cofferdam.Capability{needed},
			Call:         cofferdam.Typed(call),
		})
	}
	cofferdam.Add(cofferdam.Tool{
		Name:        "report",
		Title:       "Report",
		Description: "Returns every kind of content.",
		InputSchema: `{"type": "object", "required": ["name"],
			"properties": {"name": {"type": "string"}}}`,
		OutputSchema: `{"type": "object", "required": ["name", "count"],
			"properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}`,
		Annotations: map[string]any{"x-kind": "report"},
		Call:        cofferdam.Typed(report),
	})
	add("count_calls", "Counts its calls.", cofferdam.KeepState, countCalls)
	add("list_files", "Lists and reads text files.", cofferdam.ReadFiles, listFiles)
	cofferdam.Add(cofferdam.Tool{
		Name:         "run_command",
		Description:  "Runs a command.",
		InputSchema:  nothing,
		Capabilities: []cofferdam.Capability{cofferdam.RunCommands},
		Hints:        []cofferdam.Hint{cofferdam.Exclusive, cofferdam.Confirm},
		Call:         cofferdam.Typed(runCommand),
	})
	add("ask_agent", "Asks a sub-agent.", cofferdam.Delegate, func(none) (string, error) {
		answer, err := agents.Delegate("How many files are there?")
		return answer.Text, err
	})
	add("make_plan", "Presents a plan.", cofferdam.PresentPlan, func(none) (string, error) {
		return plans.Present("1. Nothing")
	})
	cofferdam.Add(cofferdam.Tool{
		Name:        "get_page",
		Description: "Reads a web page.",
		InputSchema: `{"type": "object", "required": ["url"],
			"properties": {"url": {"type": "string"}}}`,
		Capabilities: []cofferdam.Capability{
			cofferdam.Fetch("example.com", "GET,POST 127.0.0.1:8753"),
		},
		Call: cofferdam.Typed(getPage),
	})
	cofferdam.Add(cofferdam.Tool{
		Name:        "fail",
		Description: "Fails.",
		InputSchema: `{"type": "object", "required": ["error"],
			"properties": {"error": {"type": "string"}}}`,
		Call: cofferdam.Typed(fail),
	})
}

func report(input struct{ Name string }) (cofferdam.Output, error) {
	empty, err := cofferdam.JSON(nil)
	rows := [][]string{{input.Name, "a \"quoted\", cell\nof two lines"}, {"", ""}}
	return cofferdam.Output{
		Content: []cofferdam.Content{
			cofferdam.Text("hello"),
			empty,
			cofferdam.Image("image/png", []byte("\x89PNG\r\n\x1a\n")),
			cofferdam.Audio("audio/wav", []byte{0, 255}),
			cofferdam.TextResource("file:///a.txt", "text/plain", "copy"),
		},
		Structured: map[string]any{"name": input.Name, "count": 1},
		View:       cofferdam.TableView([]string{"name", "note"}, rows),
		Truncated:  true,
	}, err
}

func countCalls(none) (string, error) {
	text, _, err := state.GetText("calls")
	calls, _ := strconv.Atoi(text)
	text = strconv.Itoa(calls + 1)
	err = errors.Join(err, state.SetText("calls", text), state.Set("raw", []byte{0, 255}),
		state.Delete("old"))
	if err != nil {
		return "", err
	}
	keys, err := state.Keys()
	raw, again := state.Get("raw")
	if strings.Join(keys, ",") != "calls,raw" || !bytes.Equal(raw, []byte{0, 255}) {
		return "", fmt.Errorf("the keys are %v", keys)
	}
	return text, errors.Join(err, again)
}

func listFiles(none) (string, error) {
	progress.Report("walking")
	for range 20 {
		walk, err := workspace.Open(workspace.Options{})
		if err != nil {
			return "", err
		}
		for range walk.Entries() {
			break
		}
		walk.Close()
	}
	var text strings.Builder
	walk, err := workspace.Open(workspace.Options{Globs: []string{"*.txt"}})
	if err != nil {
		return "", err
	}
	defer walk.Close()
	for entry, err := range walk.Entries() {
		if err != nil {
			return "", err
		}
		if entry.Kind == workspace.KindFile {
			dated := map[bool]string{true: "undated", false: "dated"}[entry.Modified.IsZero()]
			fmt.Fprintln(&text, entry.Path, entry.Size, dated)
		}
	}
	files, err := workspace.Open(workspace.Options{Globs: []string{"*.txt"}})
	if err != nil {
		return "", err
	}
	defer files.Close()
	for file, err := range files.Files() {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s=%s\n", file.Path, file.Data)
	}
	for _, problem := range files.Problems() {
		fmt.Fprintln(&text, problem)
	}
	return text.String(), nil
}

func runCommand(none) (string, error) {
	output, err := commands.Run(commands.Command{
		Line:    "echo out; echo err >&2; exit 3",
		Timeout: 5 * time.Second,
	})
	if err != nil {
		return "", err
	}
	timed := output.Elapsed > 0 && output.Elapsed < 5*time.Second
	out, failed := strings.TrimSpace(output.Stdout), strings.TrimSpace(output.Stderr)
	return fmt.Sprintln(output.ExitCode, out, failed, timed), nil
}

func getPage(input struct{ URL string }) (string, error) {
	response, err := http.Send(http.Request{
		URL:      input.URL,
		Headers:  []http.Header{{Name: "accept", Value: "text/plain"}},
		MaxBytes: 1024,
	})
	if err != nil {
		return "", err
	}
	mediaType := response.Header("content-type")
	return fmt.Sprintf("%d %s %s", response.Status, mediaType, response.Body), nil
}

func fail(input struct{ Error string }) (string, error) {
	switch input.Error {
	case "not-found":
		return "", cofferdam.NotFound{Message: "nothing is here"}
	case "timed-out":
		return "", cofferdam.TimedOut{Message: "it took too long"}
	case "failed":
		return "", errors.New("it failed")
	}
	return "", cofferdam.InvalidInput{Pointer: "/error", Message: "there is no such error"}
}
