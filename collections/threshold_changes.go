package collections

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// ThresholdChange is one changed bound in the change log.
type ThresholdChange struct{ core.BaseRecordProxy }

// NewThresholdChange returns an unsaved entry with the next number.
func NewThresholdChange(app core.App) (*ThresholdChange, error) {
	return numbered[ThresholdChange](app, ThresholdChanges)
}

// PageOfThresholdChanges returns a page of the log, newest first, and how many entries there are in all.
func PageOfThresholdChanges(app core.App, where Conditions, offset, limit int) (page []*ThresholdChange, total int, err error) {
	records, total, err := where.PageOfPatients(app, ThresholdChanges, "changed_at DESC, id DESC", offset, limit)
	return allAs[ThresholdChange](records), total, err
}

func (c *ThresholdChange) Number() int64        { return Number(c.Id) }
func (c *ThresholdChange) PatientID() string    { return c.GetString("patient") } // "" for the practice's defaults
func (c *ThresholdChange) ChangedBy() string    { return c.GetString("changed_by") }
func (c *ThresholdChange) ChangedAt() time.Time { return ParseInstant(c.GetString("changed_at")) }
func (c *ThresholdChange) Field() string        { return c.GetString("field") }
func (c *ThresholdChange) Reason() phi.Text     { return phi.Text(c.GetString("reason")) }

// OldValue was in force before; nil for none.
func (c *ThresholdChange) OldValue() *float64 { return Optional(c.ProxyRecord(), "old_value") }

// NewValue is in force since; nil for none.
func (c *ThresholdChange) NewValue() *float64 { return Optional(c.ProxyRecord(), "new_value") }
