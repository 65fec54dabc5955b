package realtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/validate"
)

// portalNews reports that a patient has news. The portal fetches what it may read.
type portalNews struct {
	PatientID string `json:"patient_id"`
}

// publishToPortal sends each portal account the patients with news among its own.
func (p *Publisher) publishToPortal(readers []portalReader, now time.Time) error {
	ids := p.pending.portal.first(largestRound)
	for _, id := range ids {
		if !slices.ContainsFunc(readers, func(r portalReader) bool { return r.reaches(id) }) {
			continue
		}
		p.seq++
		text, err := json.Marshal(message{Type: "patient", Seq: p.seq, At: validate.FormatInstant(now), Data: portalNews{id}})
		if err != nil {
			return fmt.Errorf("encode news for the portal: %w", err)
		}
		event := bytes.Join([][]byte{[]byte("event:" + PortalTopic + "\ndata:"), text, []byte("\n\n")}, nil)
		for _, reader := range readers {
			if reader.reaches(id) {
				reader.stream.Send(subscriptions.Message{Name: PortalTopic, Data: event})
			}
		}
	}
	p.pending.portal.drop(len(ids))
	return nil
}

func (r portalReader) reaches(patientID string) bool {
	return slices.ContainsFunc(r.patients, func(access auth.PortalAccess) bool { return access.PatientID == patientID })
}
