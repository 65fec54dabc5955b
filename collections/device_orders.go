package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Kinds of device orders.
const (
	OrderNew         = "new"
	OrderReplacement = "replacement"
)

// DeviceOrder is an order that staff has to place.
type DeviceOrder struct {
	DeviceID, PatientID, Kind string
	EstimatedDelivery         string // YYYY-MM-DD
	RequestedBy               string // email address or system
	ShippingAddress           phi.Text
}

// StoreDeviceOrder stores a requested order.
func StoreDeviceOrder(tx core.App, o DeviceOrder, now time.Time) error {
	_, err := store(tx, "store device order", DeviceOrders, map[string]any{
		"device_id": o.DeviceID, "patient": o.PatientID, "kind": o.Kind, "status": "requested", "estimated_delivery": o.EstimatedDelivery,
		"requested_by": o.RequestedBy, "shipping_address": o.ShippingAddress.Reveal(), "created_at": FormatInstant(now), "updated_at": FormatInstant(now),
	})
	return err
}

// OrderDelivery is the expected delivery date of a device order, and when the order was created.
type OrderDelivery struct {
	Date      string // YYYY-MM-DD; "" without an order
	CreatedAt time.Time
}

// LatestOrderDelivery returns the delivery of the latest order of a device for a patient.
func LatestOrderDelivery(app core.App, deviceID, patientID string) (OrderDelivery, error) {
	var date, created string
	err := app.DB().NewQuery(`SELECT estimated_delivery, created_at FROM device_orders
		WHERE device_id = {:device} AND patient = {:patient} AND status != 'cancelled' ORDER BY created_at DESC LIMIT 1`).
		Bind(dbx.Params{"device": deviceID, "patient": patientID}).Row(&date, &created)
	return OrderDelivery{date, ParseInstant(created)}, wrap(IgnoreNotFound(err), "find device order")
}

// HasOpenReplacement reports whether a replacement of the device is requested or ordered.
func HasOpenReplacement(app core.App, deviceID, patientID string) (bool, error) {
	return queryValue[bool](app, "find replacement order", `SELECT EXISTS (SELECT 1 FROM device_orders WHERE device_id = {:device} AND patient = {:patient}
		AND kind = 'replacement' AND status IN ('requested', 'ordered'))`,
		dbx.Params{"device": deviceID, "patient": patientID})
}
