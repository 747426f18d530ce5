// Package commands runs commands on the user's machine. It needs cofferdam.RunCommands.
package commands

import (
	"errors"
	"time"

	"wit_component/cofferdam"
	"wit_component/cofferdam/internal/denial"
	host "wit_component/cofferdam_plugin_commands"
)

// DefaultTimeout is the time limit of a command without a timeout.
const DefaultTimeout = 120 * time.Second

// Command is a command line for `sh -c`.
type Command struct {
	Line string
	// Directory is a directory of the workspace; empty for its root.
	Directory string
	// Timeout is 1 to 600 seconds; 0 for DefaultTimeout.
	Timeout time.Duration
}

// Output is the result of a command, even if the command fails or times out.
type Output struct {
	// ExitCode is the exit code, or -1 if the command did not exit by itself.
	ExitCode int
	// Signal is the signal that ended the command, or 0.
	Signal         int
	TimedOut       bool
	Stdout, Stderr string
	Elapsed        time.Duration
}

// Run runs a command and waits until it exits. The line needs approval, by the user or by a rule.
func Run(command Command) (Output, error) {
	if command.Timeout == 0 {
		command.Timeout = DefaultTimeout
	}
	if command.Timeout < 0 {
		return Output{}, cofferdam.InvalidInput{Message: "the timeout is negative"}
	}
	result := host.Run(host.Command{
		Line:      command.Line,
		Directory: command.Directory,
		Timeout:   uint64(command.Timeout),
	})
	if result.IsErr() {
		return Output{}, failure(result.Err())
	}
	got := result.Ok()
	output := Output{
		ExitCode: -1,
		Stdout:   got.Stdout,
		Stderr:   got.Stderr,
		Elapsed:  time.Duration(got.Elapsed),
	}
	switch got.Status.Tag() {
	case host.ExitStatus_Exited:
		output.ExitCode = int(got.Status.Exited())
	case host.ExitStatus_Signaled:
		output.Signal = int(got.Status.Signaled())
	default:
		output.TimedOut = true
	}
	return output, nil
}

func failure(err host.CommandError) error {
	switch err.Tag() {
	case host.CommandError_Denied:
		return denial.Error(err.Denied())
	case host.CommandError_Invalid:
		return cofferdam.InvalidInput{Message: err.Invalid()}
	default:
		return errors.New(err.Failed())
	}
}
