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

// message is the JSON form of one change.
type message struct {
	Type string `json:"type"` // patient, stats, alert or escalation
	Seq  int64  `json:"seq"`
	At   string `json:"at"`
	Data any    `json:"data"`
}

// removal reports a patient who is no longer listed: archived or deleted.
type removal struct {
	PatientID string `json:"patient_id"`
	Removed   bool   `json:"removed"`
}

// frame is one encoded message with the patient, or the care-team user, that limits its readers.
type frame struct {
	patient, team string
	event         []byte
}

// round is one publication: rendered once, sent to each reader as far as permitted.
type round struct {
	app       core.App
	publisher *Publisher
	audience  []reader
	now       time.Time
	frames    []frame
}

// publish renders the pending changes up to the round's limit and sends them. Ids leave the queues only if all steps succeed.
func (r *round) publish() error {
	p, c := r.publisher, &r.publisher.pending
	size := min(largestRound, max(smallestRound, roundShare/len(r.audience)))
	alerts, escalations, patients := c.alerts.first(size), c.escalations.first(size), c.patients.first(size)
	aged := c.rescored.first(size - len(patients))
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
	c.rescored.drop(len(aged))
	return nil
}

// render adds a message per object. A patient without a view was removed from the list.
func (r *round) render(kind string, ids []string, show func(core.App, []string) (map[string]View, error)) error {
	if len(ids) == 0 {
		return nil
	}
	views, err := show(r.app, ids)
	if err != nil {
		return fmt.Errorf("show %s: %w", kind, err)
	}
	for _, id := range ids {
		view, found := views[id]
		if !found && kind != "patient" {
			continue
		}
		if !found {
			view = View{PatientID: id, Data: removal{PatientID: id, Removed: true}}
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

// stats adds changed totals, at most once a second: the practice's, and those of each reader's care teams.
func (r *round) stats() error {
	p := r.publisher
	if !p.pending.totals || r.now.Sub(p.statsAt) < statsEvery {
		return nil
	}
	today := collections.StartOfDay(r.now.In(p.Zone))
	sent := map[string]triage.Stats{}
	for _, reader := range r.audience {
		if _, done := sent[reader.team]; done {
			continue
		}
		stats, err := triage.ReadStats(r.app, reader.team, today)
		if err != nil {
			return err
		}
		sent[reader.team] = stats
		if before, found := p.lastStats[reader.team]; found && before == stats {
			continue
		}
		if err := r.add("stats", "", reader.team, stats); err != nil {
			return err
		}
	}
	p.lastStats, p.statsAt, p.pending.totals = sent, r.now, false
	return nil
}

// send sends each reader the permitted frames as one message; readers with the same limits share its bytes.
func (r *round) send() error {
	if len(r.frames) == 0 {
		return nil
	}
	var teams map[string][]string
	shared := map[string][]byte{}
	for _, reader := range r.audience {
		text, found := shared[reader.team]
		if !found {
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

// text returns the frames for readers limited to a user's care teams; "" is not limited.
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
