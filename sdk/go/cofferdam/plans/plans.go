// Package plans presents plans for the user's approval. It needs cofferdam.PresentPlan.
package plans

import (
	"wit_component/cofferdam"
	"wit_component/cofferdam/internal/denial"
	host "wit_component/cofferdam_plugin_plans"
)

// Present presents a plan in Markdown and waits for the decision. It returns the new mode.
func Present(plan string) (string, error) {
	result := host.Present(plan)
	if result.IsOk() {
		return result.Ok(), nil
	}
	if err := result.Err(); err.Tag() == host.PlanError_Denied {
		return "", denial.Error(err.Denied())
	}
	return "", cofferdam.InvalidInput{Message: result.Err().Invalid()}
}
