package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// guardConsent makes a new consent complete and lets an old one be revoked, and nothing else.
func (h *hooks) guardConsent(e *core.RecordEvent) error {
	if err := patients.GuardConsent(e.App, e.Record, writerOf(e.Record), h.Clock()); err != nil {
		return err
	}
	return e.Next()
}
