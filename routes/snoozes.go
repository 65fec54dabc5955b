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

func viewSnooze(c *web.Call, s *collections.Snooze) snoozeView {
	return snoozeView{
		ID: s.Number(), PatientID: s.PatientID(), Type: s.Type(), IncludeCritical: s.IncludeCritical(), Reason: orNull(s.Reason().Reveal()),
		InForce: s.InForce(c.Now), EndsAt: instantOrNull(s.EndsAt()), CreatedBy: s.CreatedBy(),
		CreatedAt: instantOrNull(s.CreatedAt()), EndedAt: instantOrNull(s.EndedAt()), EndedBy: orNull(s.EndedBy()),
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
	page, total, err := collections.PageOfSnoozes(c.App, patient.Id, inForce, c.Now, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	if err := c.RecordRead(audit.PatientRead, audit.ResourceSnooze, "", patient.Id); err != nil {
		return err
	}
	views := make([]snoozeView, len(page))
	for i, snooze := range page {
		views[i] = viewSnooze(c, snooze)
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
	var snooze *collections.Snooze
	err = c.App.RunInTransaction(func(tx core.App) error {
		snooze, err = alerts.StartSnooze(tx, patient.Id, draft, c.Actor(), c.Now)
		return err
	})
	if err != nil {
		return err
	}
	return c.Created(viewSnooze(c, snooze))
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
	var snooze *collections.Snooze
	err = c.App.RunInTransaction(func(tx core.App) error {
		snooze, err = alerts.EndSnooze(tx, patient.Id, number, c.Actor(), c.Now)
		return err
	})
	if err != nil {
		return err
	}
	return c.OK(viewSnooze(c, snooze))
}
