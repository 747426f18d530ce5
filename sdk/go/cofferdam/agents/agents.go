// Package agents gives tasks to read-only sub-agents. It needs cofferdam.Delegate.
package agents

import (
	"wit_component/cofferdam"
	"wit_component/cofferdam/internal/denial"
	host "wit_component/cofferdam_plugin_agents"
)

// Answer is the answer of a sub-agent.
type Answer struct {
	Text string
	// Complete is false if the sub-agent reached its limit of turns.
	Complete bool
	Turns    int
}

// Failure is the reason why there is no answer. Code is a stable code such as `timed-out`.
type Failure struct{ Code, Message string }

func (e Failure) Error() string { return e.Message }

// Delegate gives a task to a sub-agent and waits for the answer. A call can delegate four tasks.
func Delegate(task string) (Answer, error) {
	result := host.Delegate(task)
	if result.IsOk() {
		answer := result.Ok()
		return Answer{answer.Text, answer.Complete, int(answer.Turns)}, nil
	}
	err := result.Err()
	switch err.Tag() {
	case host.AgentError_Denied:
		return Answer{}, denial.Error(err.Denied())
	case host.AgentError_Invalid:
		return Answer{}, cofferdam.InvalidInput{Message: err.Invalid()}
	default:
		return Answer{}, Failure{err.Failed().Code, err.Failed().Message}
	}
}
