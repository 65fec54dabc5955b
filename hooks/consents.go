package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// keepConsent makes a new consent complete and lets an old one be revoked, and nothing else.
func (h *hooks) keepConsent(e *core.RecordEvent) error {
	if err := patients.KeepConsent(e.App, e.Record, writerOf(e.Record), h.Clock()); err != nil {
		return err
	}
	return e.Next()
}
