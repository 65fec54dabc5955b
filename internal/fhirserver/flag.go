package fhirserver

import (
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
)

// flagType is the alerts.
var flagType = &ResourceType{
	Type: "Flag", Action: authz.ReadAlerts, Event: audit.PatientRead, AuditResource: audit.ResourceAlert, IsLarge: true,
	Params: []Param{
		patientParam("patient", definitions+"clinical-patient"),
		patientParam("subject", definitions+"Flag-subject"),
		codeParamWith("status", "", "http://hl7.org/fhir/flag-status", flagStatuses, func(s *Search, states []string) { s.addCondition(collections.FlagStateIn(states)) }),
		{Name: "date", Type: "date", Definition: definitions + "clinical-date", add: filterByFlagDate},
	},
	Orders:     slices.Concat(newestFirst("date", collections.ByCreated), ascendingFirst("_id", collections.ByID)),
	ofPatients: true, table: collections.AlertSearch, numericID: true, render: renderFlags,
}

// flagStatuses are the statuses of FHIR. A withdrawn alert is neither active nor inactive.
var flagStatuses = []code{{"active", []string{collections.FlagActive}}, {"inactive", []string{collections.FlagClosed}}, {"entered-in-error", []string{collections.FlagWithdrawn}}}

// parsePeriodComparison parses a prefixed date for comparison with a period.
func parsePeriodComparison(text string, zone *time.Location, now time.Time) (collections.DateComparison, bool) {
	prefix, value := cutPrefix(text)
	from, until, ok := parseDate(value, zone)
	if ok && prefix == "ap" {
		from, until = widen(from, until, now)
	}
	return collections.DateComparison{Prefix: prefix, From: from, Until: until}, ok
}

func filterByFlagDate(s *Search, in *parseContext, v values) string {
	list := make([]collections.DateComparison, len(v.any))
	for i, text := range v.any {
		var ok bool
		if list[i], ok = parsePeriodComparison(text, in.engine.Zone, in.now); !ok {
			return msgDate
		}
	}
	s.dated = true
	s.addCondition(collections.FlagPeriod(list))
	return ""
}

func renderFlags(_ *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		a := collections.AsAlert(record)
		id := strconv.FormatInt(a.Number(), 10)
		state := a.FlagState()
		rows[i] = Row{ID: id, PatientID: a.PatientID(), Resource: fhir.Flag(fhir.Alert{
			ID: id, PatientID: a.PatientID(), Type: a.Type(), Level: a.Level(), Message: phi.Text(a.DisplayMessage()), IsAdministrative: !alerts.AboutReading(a.Type()),
			IsResolved: state == collections.FlagClosed, IsRetracted: state == collections.FlagWithdrawn,
			CreatedAt: a.CreatedAt(), ResolvedAt: a.ResolvedAt(), UpdatedAt: a.ChangedAt(),
		})}
	}
	return rows, nil
}
