package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225605_devices.go", func(app core.App) error {
		return saveAll(app, hubs(), devices(app), deviceAssignments(app), deviceOrders(app), gatewayEvents())
	})
}

func hubs() *table {
	return newTable("hubs").with(
		&core.TextField{Name: "hub_id", Max: 128, Required: true, Presentable: true},
		choice("status", "", "online", "offline"),
		instant("last_heartbeat_at", "Last hub.heartbeat event; only hubs that send them are watched for silence."),
		instant("last_event_at", "Last signed event that named the hub."),
		instant("state_at", "Time of the event that set the status."),
		instant("created_at", ""),
	).index("hub_id", true, "hub_id", "")
}

func devices(app core.App) *table {
	return newTable("devices").with(
		&core.TextField{Name: "device_id", Max: 128, Required: true, Presentable: true},
		text("device_type", 50, ""),
		text("model", 100, ""),
		requiredChoice("status", "", "inventory", "discovered", "assigned", "connected", "disconnected", "replaced", "retired"),
		relation(app, "patient", "patients", false, "Who holds the device now."),
		instant("assigned_at", ""),
		text("hub_id", 128, ""),
	).
		optional("battery_level", "Percent.").
		optional("signal_strength", "Negative, dBm-like.").
		with(
			choice("battery_state", "Above 20 % normal, 10 to 20 low, below 10 critical.", "normal", "low", "critical"),
			instant("last_reading_at", ""),
			instant("last_seen_at", ""),
			instant("state_at", "Time of the event that set the status."),
			text("firmware_version", 100, ""),
			instant("setup_completed_at", "Patient education done: evidence for 99453."),
			text("setup_completed_by", 254, "E-mail address."),
			flag("flagged", ""),
			text("flag_reason", 50, ""),
			instant("created_at", ""),
		).
		phi("setup_notes", 4000, "").
		index("device_id", true, "device_id", "").
		index("patient", false, "patient", "patient != ''").
		index("hub", false, "hub_id", "hub_id != ''")
}

func deviceAssignments(app core.App) *table {
	return newTable("device_assignments").with(
		requiredText("device_id", 128, ""),
		relation(app, "patient", "patients", true, ""),
		instant("assigned_at", "From this moment readings belong to the patient."),
		instant("unassigned_at", "Empty while held."),
		text("assigned_by", 254, "E-mail address."),
		text("unassigned_by", 254, "E-mail address."),
	).
		phi("unassign_reason", 500, "").
		index("device", false, "device_id, assigned_at", "").
		index("patient", false, "patient, assigned_at", "").
		index("held", true, "device_id", "unassigned_at = ''")
}

func deviceOrders(app core.App) *table {
	return newTable("device_orders").with(
		requiredText("device_id", 128, ""),
		relation(app, "patient", "patients", true, ""),
		requiredChoice("kind", "", "new", "replacement"),
		requiredChoice("status", "Orders are placed by staff; the service makes no outbound call.", "requested", "ordered", "delivered", "cancelled"),
		date("estimated_delivery", ""),
		text("requested_by", 254, "E-mail address or system."),
		instant("created_at", ""),
		instant("updated_at", ""),
	).
		phi("shipping_address", 500, "").
		index("device", false, "device_id, created_at", "").
		index("status", false, "status, created_at", "")
}

// gatewayEvents keeps every signed event that did not become an observation: quarantined, rejected, and events of
// devices and hubs. The record id is the event's own id, which is made from its deduplication key.
func gatewayEvents() *table {
	return newTable("gateway_events").withUUID().with(
		requiredChoice("status", "", "handled", "ignored", "open", "released", "discarded", "rejected"),
		text("reason", 50, "Why it could not be placed."),
		text("event_type", 100, ""),
		text("device_id", 128, ""),
		text("hub_id", 128, ""),
		text("gateway_patient_id", 100, ""),
		text("measurement_type", 100, ""),
		text("timestamp", 40, "As the device gave it."),
		structured("field_errors", "Messages per field of a rejected event."),
		text("observation", 36, "Made on release."),
		text("closed_by", 254, "E-mail address."),
		instant("received_at", ""),
		instant("closed_at", ""),
	).
		phi("payload", 65536, "The signed body, kept for release and replay.").
		phi("close_reason", 500, "").
		index("status", false, "status, received_at", "").
		index("device", false, "device_id, received_at", "device_id != ''")
}
