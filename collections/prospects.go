package collections

import (
	"github.com/pocketbase/pocketbase/core"
)

// EnrolledPatient is an active patient as far as a list of all goes.
type EnrolledPatient struct {
	ID        string `db:"id"`
	Version   int64  `db:"version"`
	Linked    bool   `db:"linked"` // the EMR knows the patient
	CreatedAt string `db:"created_at"`
}

// PatientsByEnrolment are the active patients, whoever was enrolled last first; of a person's care teams unless "".
func PatientsByEnrolment(app core.App, careTeamOf string) (list []EnrolledPatient, err error) {
	err = app.DB().Select("id", "CAST(version AS INTEGER) AS version", "(external_id != '') AS linked", "created_at").From(Patients).
		Where(Every(activePatients("id", careTeamOf))).OrderBy("created_at DESC", "id DESC").All(&list)
	return list, wrap(err, "list enrolled patients")
}

// ProspectiveEntry is what a first entry of a patient would say, from a day's facts. It is never stored.
func ProspectiveEntry(app core.App, p PatientFacts, code, day string, cents int64) (*BillingEntry, error) {
	payer := ""
	if p.Payer > 0 {
		payer = NumberID(p.Payer)
	}
	return fresh[BillingEntry](app, BillingEntries, map[string]any{
		"id": p.ID, "patient": p.ID, "payer": payer, EntryICD10Codes: p.Codes, "rendering_provider": p.Provider, "cpt_code": code, "units": 1,
		EntryChargeCents: cents, EntryAmountCents: cents, EntryServiceDate: day,
	})
}

// PreflightStamp changes when what preflight asks of members of staff does, or how many diagnosis codes were taken in.
func PreflightStamp(app core.App) (string, error) {
	return queryValue[string](app, "look at staff and codes", `SELECT COALESCE((SELECT group_concat(id || ' ' || npi || ' ' || taxonomy_code || ' ' || (first_name != '')
			|| (last_name != '') || role) FROM (SELECT * FROM users WHERE role != 'patient' ORDER BY id)), '') || (SELECT COUNT(*) FROM icd10_codes)`, nil)
}

// CountICD10 is how many diagnosis codes the table holds.
func CountICD10(app core.App) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From(ICD10Codes))
}

// ListICD10 are all diagnosis codes of the table, in order.
func ListICD10(app core.App) (list []ICD10Code, err error) {
	err = app.DB().Select("code", "description", "category").From(ICD10Codes).OrderBy("code").All(&list)
	return list, wrap(err, "list diagnosis codes")
}
