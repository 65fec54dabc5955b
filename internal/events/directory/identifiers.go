package directory

import "github.com/vigilhealth/vigil/internal/gateway"

// Identifiers returns the identifiers of an event in the order in which the directory is searched: its device decides, then the patient id, then
// the hub.
func Identifiers(key []byte, event gateway.Event) (ids []ID) {
	for _, id := range []struct {
		kind Kind
		text string
	}{{Device, event.DeviceID}, {Patient, event.PatientID}, {Hub, event.HubID}} {
		if id.text != "" {
			ids = append(ids, NewID(key, id.kind, id.text))
		}
	}
	return ids
}
