package emr

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// NewCapabilityStore returns a CapabilityStore in the database, one row per EMR.
func NewCapabilityStore(app core.App) CapabilityStore { return capabilityStore{app} }

type capabilityStore struct{ app core.App }

// Load implements [CapabilityStore].
func (s capabilityStore) Load(audience string) (known StoredCapabilities, err error) {
	stored, err := collections.FindEMRCapability(s.app, audience)
	if err != nil {
		return known, err
	}
	known.ReadAt, known.HasAccepted = stored.ReadAt, stored.HasAccepted
	if stored.Offer == "" {
		return known, nil
	}
	if err := json.Unmarshal([]byte(stored.Offer), &known.Offer); err != nil {
		return known, fmt.Errorf("read EMR capabilities: %w", err)
	}
	return known, nil
}

// Store implements [CapabilityStore].
func (s capabilityStore) Store(audience string, known StoredCapabilities) error {
	row := collections.EMRCapability{ReadAt: known.ReadAt, HasAccepted: known.HasAccepted}
	if known.Offer != nil {
		offer, err := json.Marshal(known.Offer)
		if err != nil {
			return fmt.Errorf("encode EMR capabilities: %w", err)
		}
		row.Offer = string(offer)
	}
	return s.app.RunInTransaction(func(tx core.App) error { return collections.StoreEMRCapability(tx, audience, row) })
}
