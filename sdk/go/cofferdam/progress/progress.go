// Package progress shows the progress of a long call. It needs no capability.
package progress

import host "wit_component/cofferdam_plugin_progress"

// Report shows the first 200 characters of a line to the user.
func Report(message string) { host.Report(message) }
