package fhirserver

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// deviceType is the registered measuring devices.
var deviceType = &ResourceType{
	Type: "Device", Action: authz.ReadDevices, Event: audit.PatientRead, AuditResource: audit.ResourceDevice,
	Params: []Param{
		patientParam("patient", definitions+"Device-patient"),
		{Name: "identifier", Type: "token", Definition: definitions + "Device-identifier", add: filterByDeviceID},
		{Name: "type", Type: "token", Definition: definitions + "Device-type", add: filterByDeviceType},
	},
	Orders: idOrders, ofPatients: true, shared: true, table: collections.DeviceSearch, render: renderDevices,
}

// deviceIdentifierSystem is the identifier system of the gateway's device ids.
const deviceIdentifierSystem = "urn:rpm:device"

func filterByDeviceID(s *Search, _ *parseContext, v values) string {
	return s.filterByIdentifiers(v, identifierSystem{deviceIdentifierSystem, s.Type.table.AnyOf, collections.ByDeviceID})
}

func filterByDeviceType(s *Search, _ *parseContext, v values) string {
	s.addCondition(s.Type.table.AnyOf(collections.ByType, matchingKinds(v, func(t token, d *vitals.Definition) bool {
		return d.FHIR.Device.Code != "" && t.is("http://snomed.info/sct", d.FHIR.Device.Code)
	})))
	return ""
}

func renderDevices(_ *Engine, app core.App, records []*core.Record, _ Reader) ([]Row, error) {
	ids := idsOf(records)
	updateTimes, err := collections.DeviceUpdateTimes(app, ids)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(records))
	for i, record := range records {
		d := collections.AsDevice(record)
		rows[i] = Row{ID: d.Id, PatientID: d.PatientID(), Resource: fhir.DeviceResource(fhir.RegisteredDevice{
			Device: fhir.Device{Manufacturer: d.Manufacturer(), Model: d.Model(), SerialNumber: d.SerialNumber(), UDI: d.UDI()},
			ID:     d.Id, DeviceID: d.DeviceID(), Kind: vitals.Kind(d.Kind()), Firmware: d.Firmware(), PatientID: d.PatientID(),
			InUse:     slices.Contains([]string{collections.DeviceAssigned, collections.DeviceConnected, collections.DeviceDisconnected}, d.Status()),
			UpdatedAt: collections.ParseInstant(updateTimes[d.Id]),
		})}
	}
	return rows, nil
}
