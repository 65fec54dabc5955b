package collections

import (
	"github.com/pocketbase/pocketbase/core"
)

// EnrolledPatient is an active patient in the list of all.
type EnrolledPatient struct {
	ID        string `db:"id"`
	Version   int64  `db:"version"`
	Linked    bool   `db:"linked"` // the EMR has the patient
	CreatedAt string `db:"created_at"`
}

// PatientsByEnrollment returns the active patients, latest enrolled first; careTeamOf narrows to a user's care teams unless "".
func PatientsByEnrollment(app core.App, careTeamOf string) (list []EnrolledPatient, err error) {
	err = app.DB().Select("id", "CAST(version AS INTEGER) AS version", "(external_id != '') AS linked", "created_at").From(Patients).
		Where(AllOf(activePatients("id", careTeamOf))).OrderBy("created_at DESC", "id DESC").All(&list)
	return list, wrap(err, "list enrolled patients")
}

// ProspectiveEntry returns the first entry that a patient's current facts would give. It is never stored.
func ProspectiveEntry(app core.App, p PatientFacts, code, day string, cents int64) (*BillingEntry, error) {
	payer := ""
	if p.Payer > 0 {
		payer = NumberID(p.Payer)
	}
	return newRecord[BillingEntry](app, BillingEntries, map[string]any{
		"id": p.ID, "patient": p.ID, "payer": payer, EntryICD10Codes: p.Codes, "rendering_provider": p.Provider, "cpt_code": code, "units": 1,
		EntryChargeCents: cents, EntryAmountCents: cents, EntryServiceDate: day,
	})
}

// PreflightVersion returns a text that changes when the staff data that preflight checks changes, or the number of diagnosis codes.
func PreflightVersion(app core.App) (string, error) {
	return queryValue[string](app, "read staff and diagnosis codes", `SELECT COALESCE((SELECT group_concat(id || ' ' || npi || ' ' || taxonomy_code || ' ' || (first_name != '')
			|| (last_name != '') || role) FROM (SELECT * FROM users WHERE role != 'patient' ORDER BY id)), '') || (SELECT COUNT(*) FROM icd10_codes)`, nil)
}
