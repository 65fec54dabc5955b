package cmd

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/visitreport"
)

// documentOptions makes the documents of the EMR from the visit report.
func (s *Service) documentOptions() emr.DocumentOptions {
	practice := visitreport.Practice{Name: s.settings.Practice.Name, Letterhead: s.settings.Practice.Letterhead(), Zone: s.settings.PracticeLocation}
	return emr.DocumentOptions{
		Type: s.settings.EMR.DocumentType, Author: practice.Name, Zone: practice.Zone,
		Make: func(app core.App, d emr.Document, now time.Time) (pdf []byte, isEmpty bool, err error) {
			return practice.Document(app, d.PatientID, d.EscalationID, d.From, d.To, now)
		},
	}
}
