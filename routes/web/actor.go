package web

import (
	"errors"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
)

// Origin is where the request came from, for the audit trail.
func (c *Call) Origin() audit.Origin {
	return audit.Origin{Address: c.Address, Client: input.CleanLine(c.Request.UserAgent()), RequestID: c.RequestID}
}

// Actor is who makes the request, for the audit trail.
func (c *Call) Actor() audit.Actor {
	if c.Caller.ID == 0 {
		return audit.Anonymous(c.Origin())
	}
	return c.Caller.Actor(c.Origin())
}

// noteDenied leaves a trace of a caller who asked for more than is permitted; the refusal stays what it is.
// Source: docs/decisions/security.md, "Audit record".
func (c *Call) noteDenied(row Route, refusal error) error {
	if c.Caller.ID == 0 || Translate(refusal).Kind != fault.Forbidden {
		return refusal
	}
	err := audit.Append(c.App, audit.Entry{
		Event: audit.AccessDenied, Outcome: audit.MinorFailure, Actor: c.Actor(),
		ResourceType: audit.ResourceEndpoint, ResourceID: row.Method + " " + row.Path,
	}, c.Now)
	return errors.Join(refusal, err)
}

// RecordRead notes in the audit trail whose data the caller was shown: one row for each call, and durable before it is shown.
// Source: docs/decisions/security.md, "Audit record".
func (c *Call) RecordRead(event audit.Event, resourceType, resourceID string, patientIDs ...string) error {
	entry := audit.Entry{Event: event, Actor: c.Actor(), ResourceType: resourceType, ResourceID: resourceID}
	if len(patientIDs) == 1 {
		entry.PatientID = patientIDs[0]
	} else {
		entry.Changes = audit.Changes{"patient_ids": {New: patientIDs}}
	}
	return c.reads.Append(c.App, entry, c.Now)
}
