package cmd

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/visitreport"
)

// documentOptions makes the documents of the EMR from the visit report.
func (s *Service) documentOptions() emr.DocumentOptions {
	practice := visitreport.Practice{Name: s.settings.Practice.Name, Letterhead: s.settings.Practice.Letterhead(), Zone: s.settings.PracticeLocation}
	return emr.DocumentOptions{
		Type: s.settings.EMR.DocumentType, Author: practice.Name, Zone: practice.Zone,
		Make: func(app core.App, patientID string, from, to, now time.Time) (pdf []byte, isEmpty bool, err error) {
			patient, err := collections.FindPatient(app, patientID)
			if err != nil {
				return nil, false, err
			}
			report, err := visitreport.Build(app, practice, patient, visitreport.Request{From: from, To: to, MadeBy: phi.Text(practice.Name)}, now)
			if err != nil {
				return nil, false, err
			}
			pdf, err = report.PDF()
			return pdf, !report.HasReadings(), err
		},
	}
}
