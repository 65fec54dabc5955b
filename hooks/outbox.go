package hooks

import "github.com/pocketbase/pocketbase/core"

// What runs after a commit only wakes somebody, and never fails: the row is stored, and the clock finds what a lost wake meant.

// wakeWorker tells the transmission worker that there is something to send.
func (h *hooks) wakeWorker(e *core.RecordEvent) error {
	h.Wake()
	return e.Next()
}

// wakeMailer tells the mailer that there is something to send.
func (h *hooks) wakeMailer(e *core.RecordEvent) error {
	h.WakeMailer()
	return e.Next()
}

// forgetUser lets the check of access tokens read the user anew, so that a changed role or a deactivation holds from the next request on.
func (h *hooks) forgetUser(e *core.RecordEvent) error {
	h.Forget(e.Record.Id)
	return e.Next()
}
