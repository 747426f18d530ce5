// Package denial converts denials of the host.
package denial

import (
	"wit_component/cofferdam"
	wit "wit_component/cofferdam_plugin_types"
)

// Error returns a denial as an error.
func Error(denial wit.Denial) error {
	return cofferdam.Denied{
		Code:   denial.Code,
		Reason: denial.Reason,
		Remedy: denial.Remedy.SomeOr(""),
	}
}
