package realtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
)

// message is what readers get.
type message struct {
	Type string `json:"type"` // patient, stats, alert or escalation
	Seq  int64  `json:"seq"`
	At   string `json:"at"`
	Data any    `json:"data"`
}

// left tells of a patient who is no longer on the list: archived or deleted.
type left struct {
	PatientID string `json:"patient_id"`
	Removed   bool   `json:"removed"`
}

// frame is one message in the form of the stream, and whom it is about: the care team of a patient, or one user's.
type frame struct {
	patient, team string
	event         []byte
}

// round is one publication: rendered once, handed to each reader as far as it concerns them.
type round struct {
	app       core.App
	publisher *Publisher
	audience  []reader
	now       time.Time
	frames    []frame
}

// tell renders what waits, up to a round's share, and sends it. What was rendered leaves the queues only when all was.
func (r *round) tell() error {
	p, c := r.publisher, &r.publisher.changes
	size := min(largestRound, max(smallestRound, roundShare/len(r.audience)))
	alerts, escalations, patients := c.alerts.first(size), c.escalations.first(size), c.patients.first(size)
	aged := c.aged.first(size - len(patients))
	views := p.Views
	for _, step := range []func() error{
		func() error { return r.render("alert", alerts, views.Alerts) },
		func() error { return r.render("escalation", escalations, views.Escalations) },
		func() error { return r.render("patient", patients, views.Patients) },
		func() error { return r.render("patient", aged, views.Patients) },
		r.stats,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := r.send(); err != nil {
		return err
	}
	c.alerts.drop(len(alerts))
	c.escalations.drop(len(escalations))
	c.patients.drop(len(patients))
	c.aged.drop(len(aged))
	return nil
}

// render makes a message of each thing. A patient who is not there any more has left the list.
func (r *round) render(kind string, ids []string, show func(core.App, []string) (map[string]View, error)) error {
	if len(ids) == 0 {
		return nil
	}
	views, err := show(r.app, ids)
	if err != nil {
		return fmt.Errorf("show %s: %w", kind, err)
	}
	for _, id := range ids {
		view, there := views[id]
		if !there && kind != "patient" {
			continue
		}
		if !there {
			view = View{PatientID: id, Data: left{PatientID: id, Removed: true}}
		}
		if err := r.add(kind, view.PatientID, "", view.Data); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) add(kind, patient, team string, data any) error {
	r.publisher.seq++
	text, err := json.Marshal(message{Type: kind, Seq: r.publisher.seq, At: validate.FormatInstant(r.now), Data: data})
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	r.frames = append(r.frames, frame{patient: patient, team: team, event: fmt.Appendf(nil, "event:%s\ndata:%s\n\n", Topic, text)})
	return nil
}

// stats tells the totals that changed, at most once a second: the practice's, and those of each reader's care teams.
func (r *round) stats() error {
	p := r.publisher
	if !p.changes.totals || r.now.Sub(p.toldAt) < statsEvery {
		return nil
	}
	today := collections.StartOfDay(r.now.In(p.Zone))
	told := map[string]triage.Stats{}
	for _, reader := range r.audience {
		if _, done := told[reader.team]; done {
			continue
		}
		stats, err := triage.ReadStats(r.app, reader.team, today)
		if err != nil {
			return err
		}
		told[reader.team] = stats
		if before, known := p.told[reader.team]; known && before == stats {
			continue
		}
		if err := r.add("stats", "", reader.team, stats); err != nil {
			return err
		}
	}
	p.told, p.toldAt, p.changes.totals = told, r.now, false
	return nil
}

// send hands each reader what concerns them, as one message: a thousand readers of the same share its text.
func (r *round) send() error {
	if len(r.frames) == 0 {
		return nil
	}
	var teams map[string][]string
	shared := map[string][]byte{}
	for _, reader := range r.audience {
		text, known := shared[reader.team]
		if !known {
			if reader.team != "" && teams == nil {
				var err error
				if teams, err = collections.CareTeams(r.app, r.patients()); err != nil {
					return err
				}
			}
			text = r.text(reader.team, teams)
			shared[reader.team] = text
		}
		if len(text) > 0 {
			reader.stream.Send(subscriptions.Message{Name: Topic, Data: text})
		}
	}
	return nil
}

func (r *round) patients() (ids []string) {
	for _, frame := range r.frames {
		if frame.patient != "" {
			ids = append(ids, frame.patient)
		}
	}
	return ids
}

// text is what a reader confined to a user's care teams, or to nobody's, gets of a round.
func (r *round) text(team string, teams map[string][]string) []byte {
	var text bytes.Buffer
	for _, frame := range r.frames {
		about := frame.patient == "" && frame.team == team // totals
		if frame.patient != "" {
			about = team == "" || slices.Contains(teams[frame.patient], team)
		}
		if about {
			text.Write(frame.event)
		}
	}
	return text.Bytes()
}
