package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/routes/web"
)

// snoozeView is a snooze as the contract shows it.
type snoozeView struct {
	ID              int64   `json:"id"`
	PatientID       string  `json:"patient_id"`
	Type            string  `json:"type"`
	IncludeCritical bool    `json:"include_critical"`
	Reason          *string `json:"reason"`
	InForce         bool    `json:"in_force"`
	EndsAt          *string `json:"ends_at"`
	CreatedBy       string  `json:"created_by"`
	CreatedAt       *string `json:"created_at"`
	EndedAt         *string `json:"ended_at"`
	EndedBy         *string `json:"ended_by"`
}

func viewSnooze(c *web.Call, record *core.Record) snoozeView {
	return snoozeView{
		ID: collections.Number(record.Id), PatientID: record.GetString("patient"), Type: record.GetString("type"),
		IncludeCritical: record.GetBool("include_critical"), Reason: orNull(record.GetString("reason")),
		InForce: alerts.SnoozeInForce(record, c.Now), EndsAt: storedInstant(record, "ends_at"), CreatedBy: record.GetString("created_by"),
		CreatedAt: storedInstant(record, "created_at"), EndedAt: storedInstant(record, "ended_at"), EndedBy: orNull(record.GetString("ended_by")),
	}
}

func (a *api) listSnoozes(c *web.Call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	q := c.Query()
	p := q.Paging()
	inForce := q.Boolean("in_force")
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := alerts.PageOfSnoozes(c.App, patient.Id, inForce, c.Now, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableRecords(page)
	if err := c.RecordRead(audit.PatientRead, audit.ResourceSnooze, "", patient.Id); err != nil {
		return err
	}
	views := make([]snoozeView, len(page))
	for i, record := range page {
		views[i] = viewSnooze(c, record)
	}
	return web.List(c, p, total, views, unreadable)
}

func (a *api) startSnooze(c *web.Call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	var body alerts.SnoozeBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.Read(checks, c.Now)
	if err := checks.Err(); err != nil {
		return err
	}
	var record *core.Record
	err = c.App.RunInTransaction(func(tx core.App) error {
		record, err = alerts.StartSnooze(tx, patient.Id, draft, c.Actor(), c.Now)
		return err
	})
	if err != nil {
		return err
	}
	return c.Created(viewSnooze(c, record))
}

func (a *api) endSnooze(c *web.Call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	number, err := c.PathInteger("snooze_id")
	if err != nil {
		return err
	}
	var record *core.Record
	err = c.App.RunInTransaction(func(tx core.App) error {
		record, err = alerts.EndSnooze(tx, patient.Id, number, c.Actor(), c.Now)
		return err
	})
	if err != nil {
		return err
	}
	return c.OK(viewSnooze(c, record))
}
