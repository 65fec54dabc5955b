package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// ProposedTemplates returns the SQL column with the undecided templates of a triage row: [{id, name, bounds}] in order of creation, NULL for
// none. The row holds their numbers only, so a changed template is in force at once and a deleted one in force no more.
func ProposedTemplates(row string) string {
	return `CASE WHEN length(` + row + `.proposed_templates) > 2 THEN
		(SELECT json_group_array(json_object('id', CAST(h.id AS INTEGER), 'name', h.name, 'bounds', json(h.bounds)) ORDER BY h.id)
			FROM json_each(` + row + `.proposed_templates) i CROSS JOIN threshold_templates h ON h.id = printf('%015d', i.value)) END`
}

// thresholdFacts returns what decides about a patient's bounds beside the stored ones.
func thresholdFacts(app core.App, patientID string) (ageGroup, proposed string, err error) {
	err = app.DB().Select("age_group", "COALESCE("+ProposedTemplates("t")+", '')").From(TriageScores+" t").Where(dbx.HashExp{"t.patient": patientID}).
		Row(&ageGroup, &proposed)
	return ageGroup, proposed, wrap(IgnoreNotFound(err), "read what decides about thresholds")
}

// DeclinedTemplate is a proposal that a clinician declined.
type DeclinedTemplate struct {
	ID int64  `json:"id"`
	At string `json:"at"`
	By string `json:"by"`
}

// ParseDeclinedTemplates parses the stored list.
func ParseDeclinedTemplates(stored string) (list []DeclinedTemplate, err error) {
	if stored == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(stored), &list)
	return list, wrap(err, "read declined templates")
}

// StoreDeclinedTemplates stores the declined proposals of a patient.
func StoreDeclinedTemplates(tx core.App, patientID string, list []DeclinedTemplate) error {
	text, err := json.Marshal(list)
	if err != nil {
		return wrap(err, "encode declined templates")
	}
	if len(list) == 0 {
		text = nil
	}
	return exec(tx, "store declined templates", `UPDATE triage_scores SET declined_templates = {:list} WHERE patient = {:patient} AND declined_templates != {:list}`,
		dbx.Params{"list": string(text), "patient": patientID})
}

// StoreProposedTemplates stores the numbers of a patient's undecided templates, and reports whether they differ from the stored ones.
func StoreProposedTemplates(tx core.App, patientID string, numbers []int64) (changed bool, err error) {
	text, err := json.Marshal(append([]int64{}, numbers...))
	if err != nil {
		return false, wrap(err, "encode proposed templates")
	}
	n, err := execCounted(tx, "store proposed templates",
		`UPDATE triage_scores SET proposed_templates = {:list} WHERE patient = {:patient} AND proposed_templates != {:list}`,
		dbx.Params{"list": string(text), "patient": patientID})
	return n > 0, err
}

// HasUnproposed reports whether an earlier version stored a patient without looking for templates.
func HasUnproposed(app core.App) (bool, error) {
	return queryValue[bool](app, "look for patients without proposals", `SELECT EXISTS (SELECT 1 FROM triage_scores WHERE proposed_templates = '' AND listed = TRUE)`, nil)
}

// Diagnosed is a listed patient, as proposing templates needs one.
type Diagnosed struct {
	ID, TimeZone string
	Codes        []string
	Born         phi.Text // YYYY-MM-DD
	Unreadable   bool
}

// DiagnosedAfter returns the next listed patients in order of id.
func DiagnosedAfter(app core.App, after string, limit int) (page []Diagnosed, err error) {
	query := app.DB().NewQuery(`SELECT p.id, COALESCE(p.icd10_codes, '[]'), p.date_of_birth, p.time_zone FROM patients p CROSS JOIN triage_scores t ON t.patient = p.id
		WHERE p.id > {:after} AND +t.listed = TRUE ORDER BY p.id LIMIT {:limit}`).Bind(dbx.Params{"after": after, "limit": limit})
	err = eachRow("list patients with diagnoses", query, func(rows *dbx.Rows) error {
		var d Diagnosed
		var codes, born string
		if err := rows.Scan(&d.ID, &codes, &born, &d.TimeZone); err != nil {
			return err
		}
		if json.Unmarshal([]byte(codes), &d.Codes) != nil {
			d.Codes = nil // damaged: none
		}
		day, err := OpenValue(born, Patients, PatientDateOfBirth, d.ID)
		d.Born, d.Unreadable = phi.Text(day), err != nil
		page = append(page, d)
		return nil
	})
	return page, err
}

// UndecidedTemplates counts the active patients with provisional bounds, and those for which no one decided since a time; careTeamOf narrows
// to a user's care teams, "" counts all.
func UndecidedTemplates(app core.App, careTeamOf string, since time.Time) (all, overdue int, err error) {
	where := Conditions{dbx.NewExp("+listed = TRUE AND provisional_since != ''")}.OnCareTeamOf(careTeamOf)
	if all, err = where.Count(app, TriageScores); err != nil || all == 0 {
		return 0, 0, err
	}
	where = append(where, dbx.NewExp("provisional_since <= {:since}", dbx.Params{"since": FormatInstant(since)}))
	overdue, err = where.Count(app, TriageScores)
	return all, overdue, err
}
