package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The kinds of device orders.
const (
	OrderNew         = "new"
	OrderReplacement = "replacement"
)

// DeviceOrder is an order that waits for staff to place it.
type DeviceOrder struct {
	DeviceID, PatientID, Kind string
	EstimatedDelivery         string // YYYY-MM-DD
	RequestedBy               string // e-mail address or system
	ShippingAddress           phi.Text
}

// StoreOrder stores a requested order.
func StoreOrder(tx core.App, o DeviceOrder, now time.Time) error {
	record, err := New(tx, DeviceOrders)
	if err != nil {
		return err
	}
	for column, value := range map[string]any{
		"device_id": o.DeviceID, "patient": o.PatientID, "kind": o.Kind, "status": "requested", "estimated_delivery": o.EstimatedDelivery,
		"requested_by": o.RequestedBy, "shipping_address": o.ShippingAddress.Reveal(), "created_at": Instant(now), "updated_at": Instant(now),
	} {
		record.Set(column, value)
	}
	return wrap(tx.Save(record), "store device order")
}

// Delivery is when an order that ships a device to a patient is expected, and when it was made.
type Delivery struct {
	Date      string // YYYY-MM-DD; "" without an order
	CreatedAt time.Time
}

// LatestDelivery returns the delivery of the latest order that ships a device to a patient.
func LatestDelivery(app core.App, deviceID, patientID string) (Delivery, error) {
	var date, created string
	err := app.DB().NewQuery(`SELECT estimated_delivery, created_at FROM device_orders
		WHERE device_id = {:device} AND patient = {:patient} AND status != 'cancelled' ORDER BY created_at DESC LIMIT 1`).
		Bind(dbx.Params{"device": deviceID, "patient": patientID}).Row(&date, &created)
	return Delivery{date, ParseInstant(created)}, wrap(unlessMissing(err), "find device order")
}

// ReplacementOpen reports whether a replacement of the device is on its way already.
func ReplacementOpen(app core.App, deviceID, patientID string) (bool, error) {
	return queryValue[bool](app, "find replacement order", `SELECT EXISTS (SELECT 1 FROM device_orders WHERE device_id = {:device} AND patient = {:patient}
		AND kind = 'replacement' AND status IN ('requested', 'ordered'))`,
		dbx.Params{"device": deviceID, "patient": patientID})
}
