package cmd

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/rules"
)

// inspect looks for what somebody did to the file while nobody was serving it: a trail that does not end as it should is told; rules and
// options of PocketBase's collections that are not ours are told and put right before a door opens.
func inspect(app core.App, log *slog.Logger, now time.Time) error {
	if err := audit.CheckEnd(app); err != nil { // it is told, and stops nobody's care
		log.Error("audit trail", slog.Any("error", err))
	}
	found, err := rules.PutRight(app, now)
	for _, one := range found {
		log.Error("a rule of PocketBase's was changed in the file and is put right", slog.String("collection", one.Collection), slog.String("what", one.What))
	}
	if err != nil {
		return fmt.Errorf("what PocketBase's collections allow: %w", err)
	}
	return nil
}
