package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225604_patients.go", func(app core.App) error {
		if err := patients(app).save(app); err != nil {
			return err
		}
		return saveAll(app, careTeam(app), consents(app))
	})
}

func patients(app core.App) *table {
	t := newTable("patients").withUUID().
		phi("first_name", 100, "Given name.").
		phi("last_name", 100, "Family name.").
		phi("date_of_birth", 10, "YYYY-MM-DD.").
		phi("phone", 20, "").
		phi("email", 254, "").
		phi("address", 2000, `JSON object: line1, line2, city, state, zip, country.`).
		phi("ssn", 11, "Social security number, AAA-GG-SSSS.").
		phi("insurance_member_id", 50, "").
		phi("archive_reason", 500, "")
	for _, name := range []string{"first_name", "last_name"} {
		t.require(name)
	}
	t.require("date_of_birth")
	return t.with(
		requiredChoice("gender", "Administrative gender, as FHIR has it.", "male", "female", "other", "unknown"),
		&core.TextField{Name: "mrn", Max: 50, Required: true, Presentable: true, Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$`, Help: "Medical record number, unique without regard to case."},
		text("external_id", 100, "Identifier in the external EMR, without the prefix Patient/."),
		text("gateway_patient_id", 100, "Identifier at the device gateway."),
		flag("active", "Archived patients are inactive."),
		text("time_zone", 64, "IANA name; the practice's zone when empty."),
		relation(app, "primary_provider", "users", false, "Assignee of escalations and rendering provider by default."),
		structured("icd10_codes", "List of ICD-10-CM codes."),
		structured("programs", "List of programme names."),
		structured("monitoring_schedule", `How often each kind is expected, e.g. {"blood_pressure":{"per_day":1}}; null for one a day and assigned device.`),
		integer("insurance_payer", "Number of the payer; 0 for none."),
		integer("version", "Rises with each change; meta.versionId of the FHIR Patient."),
		instant("archived_at", ""),
		text("archived_by", 254, "E-mail address."),
		instant("unarchived_at", ""),
		text("unarchived_by", 254, "E-mail address."),
		instant("deleted_at", "Set when deleted: kept for compliance, hidden from everyone but administrators."),
		text("deleted_by", 254, "E-mail address."),
		&core.TextField{Name: "ssn_index", Max: 64, Hidden: true, Help: "Keyed hash, for finding equal numbers."},
		&core.TextField{Name: "phone_index", Max: 64, Hidden: true},
		&core.TextField{Name: "email_index", Max: 64, Hidden: true},
		instant("created_at", ""),
		instant("updated_at", ""),
	).
		index("mrn", true, "mrn COLLATE NOCASE", "").
		index("gateway_id", true, "gateway_patient_id", "gateway_patient_id != ''").
		index("external_id", true, "external_id", "external_id != ''").
		index("created", false, "created_at, id", "").
		index("ssn", false, "ssn_index", "ssn_index != ''").
		index("email", false, "email_index", "email_index != ''").
		index("phone", false, "phone_index", "phone_index != ''")
}

// require makes an encrypted field mandatory.
func (t *table) require(name string) {
	if field, ok := t.Fields.GetByName(name).(interface{ SetRequired(bool) }); ok {
		field.SetRequired(true)
	}
}

func careTeam(app core.App) *table {
	return newTable("care_team_members").with(
		relation(app, "patient", "patients", true, ""),
		relation(app, "user", "users", true, "An active provider, nurse, medical assistant or clinical manager."),
		text("role", 50, "What the person does for this patient."),
		instant("created_at", ""),
	).index("patient_user", true, "patient, user", "").index("user", false, "user, patient", "")
}

func consents(app core.App) *table {
	return newTable("consents").with(
		relation(app, "patient", "patients", true, ""),
		requiredChoice("type", "", "rpm", "ccm", "data_sharing", "messaging"),
		requiredChoice("method", "", "written", "verbal", "electronic"),
		instant("granted_at", ""),
		instant("expires_at", ""),
		text("obtained_by", 254, "Who took it down."),
		text("recorded_by", 254, "E-mail address."),
		instant("revoked_at", ""),
		text("revoked_by", 254, "E-mail address."),
		instant("created_at", ""),
	).
		phi("document_reference", 500, "").
		phi("notes", 4000, "Required for verbal consent.").
		phi("revoke_reason", 500, "").
		index("patient", false, "patient, type, granted_at", "")
}
