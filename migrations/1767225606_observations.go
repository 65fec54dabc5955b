package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225606_observations.go", func(app core.App) error {
		return saveAll(app, observations(app), transmissions(app), transmissionAttempts())
	})
}

func observations(app core.App) *table {
	return newTable("observations").withUUID().with(
		relation(app, "patient", "patients", true, ""),
		requiredChoice("observation_type", "", "blood_pressure", "weight", "pulse_oximetry", "blood_glucose"),
		instant("measured_at", "When the device took it."),
		text("device_id", 128, ""),
		choice("source", "", "gateway", "api", "patient_portal"),
	).
		optional("systolic", "mmHg, 60 to 300.").
		optional("diastolic", "mmHg, 30 to 200, below systolic.").
		optional("pulse", "Beats per minute, 30 to 250.").
		optional("weight_kg", "Kilograms, 20 to 500.").
		optional("spo2", "Percent, 50 to 100.").
		optional("perfusion_index", "Percent, 0 to 20.").
		optional("glucose_mg_dl", "mg/dL, 20 to 600.").
		with(
			choice("irregular_heartbeat", "Empty when the device did not say.", "yes", "no"),
			choice("meal_context", "", "fasting", "before_meal", "after_meal", "bedtime", "random"),
			choice("comparator", "The meter read LO or HI.", "<", ">"),
		).
		optional("original_value", "As received, when converted.").
		with(
			text("original_unit", 20, ""),
			choice("status", "", "final", "entered_in_error"),
			instant("entered_in_error_at", ""),
			text("entered_in_error_by", 254, "E-mail address."),
		).
		phi("entered_in_error_reason", 500, "").
		with(
			choice("fhir_status", "Empty while there is no FHIR form.", "pending", "processing", "transmitted", "failed"),
			integer("fhir_version", "meta.versionId; rises with each transform."),
			instant("transformed_at", ""),
			text("transform_error", 200, ""),
			text("emr_resource_id", 128, "Given by the EMR."),
			&core.TextField{Name: "reading_key", Max: 64, Hidden: true, Help: "One reading is stored once, however it came."},
			&core.TextField{Name: "gateway_key", Max: 300, Hidden: true, Help: "Device, second and kind of a gateway reading."},
		).
		optional("processing_ms", "From receipt to storage.").
		with(instant("created_at", ""), instant("updated_at", "")).
		index("reading_key", true, "reading_key", "reading_key != ''").
		index("gateway_key", true, "gateway_key", "gateway_key != ''").
		index("patient_measured", false, "patient, observation_type, measured_at", "").
		index("patient_time", false, "patient, measured_at", "").
		index("measured", false, "measured_at, id", "").
		index("created", false, "created_at", "").
		index("undelivered", false, "fhir_status, measured_at", "fhir_status != 'transmitted'")
}

// transmissions has the contract's TXN-<year>-<number> as its record id; one per observation.
func transmissions(app core.App) *table {
	t := newTable("transmissions")
	id := t.Fields.GetByName("id").(*core.TextField)
	id.Min, id.Max, id.Pattern, id.AutogeneratePattern = 15, 30, `^TXN-\d{4}-\d{6,}$`, `TXN-2000-[0-9]{9}`
	return t.with(
		requiredText("observation", 36, ""),
		relation(app, "patient", "patients", true, ""),
		requiredChoice("observation_type", "", "blood_pressure", "weight", "pulse_oximetry", "blood_glucose"),
		requiredChoice("status", "", "pending", "processing", "transmitted", "failed"),
		text("error_message", 300, "Plain, without health information."),
		text("error_code", 50, ""),
		integer("attempt_count", "Failed deliveries that took a slot of the retry schedule."),
		flag("ambiguous", "The last send may have reached the EMR: search there before sending again."),
		instant("claimed_at", "When a worker took it up."),
		instant("first_attempted_at", ""),
		instant("last_attempted_at", ""),
		instant("next_retry_at", "Empty when transmitted, pending or given up."),
		text("emr_resource_id", 128, ""),
		text("sent_hash", 64, "SHA-256 of the resource as delivered."),
		instant("created_at", ""),
		instant("updated_at", ""),
	).
		phi("diagnostics", 5000, "The EMR's OperationOutcome.").
		index("observation", true, "observation", "").
		index("patient", false, "patient, created_at", "").
		index("due", false, "status, next_retry_at", "status != 'transmitted'").
		index("attempted", false, "last_attempted_at", "").
		index("id_nocase", false, "id COLLATE NOCASE", "")
}

func transmissionAttempts() *table {
	return newTable("transmission_attempts").with(
		requiredText("transmission", 30, ""),
		instant("started_at", ""),
		integer("duration_ms", ""),
	).
		optional("status_code", "HTTP status of the EMR, when it answered.").
		with(
			text("request_id", 64, ""),
			text("error_code", 50, "Empty on success."),
		).
		index("transmission", false, "transmission, started_at", "")
}
