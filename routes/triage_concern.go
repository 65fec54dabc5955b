package routes

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// concernView is the most urgent finding about a patient.
type concernView struct {
	State      string             `json:"state"`
	Type       *string            `json:"type"`
	Rule       *string            `json:"rule"`
	Parameter  *string            `json:"parameter"`
	Unit       *string            `json:"unit"`
	Values     map[string]float64 `json:"values"`
	Change     *float64           `json:"change"`
	MeasuredAt *string            `json:"measured_at"`
	Bounds     boundsView         `json:"bounds"`
	Reasons    []reasonView       `json:"reasons"`
}

type boundsView struct {
	CriticalLow *float64 `json:"critical_low"`
	Low         *float64 `json:"low"`
	High        *float64 `json:"high"`
	Critical    *float64 `json:"critical"`
}

type reasonView struct {
	Code  string  `json:"code"`
	Text  string  `json:"text"`
	Since *string `json:"since"`
}

type pointView struct {
	At    string  `json:"at"`
	Value float64 `json:"value"`
}

// holderView is the clinician who is handling the patient.
type holderView struct {
	State    string  `json:"state"`
	By       *string `json:"by"`
	Name     *string `json:"name"`
	Since    *string `json:"since"`
	Until    *string `json:"until"`
	Priority *string `json:"priority"`
}

// addRowDetails adds the columns shown next to the score. Source: docs/decisions/triage.md, "Row details".
func addRowDetails(ctx context.Context, app core.App, views []triageView, lines bool, now time.Time) error {
	ids := web.Map(views, func(v triageView) string { return v.PatientID })
	rows, err := triage.ReadRowDetails(ctx, app, ids, lines, now)
	if err != nil {
		return err
	}
	holders := distinct(slices.Collect(maps.Values(rows)), func(row triage.RowDetails) string { return row.Response.By })
	names, err := collections.UserNamesByEmail(app, holders)
	if err != nil {
		return err
	}
	for i := range views {
		row := rows[ids[i]]
		views[i].Concern = new(viewConcern(row.Concern))
		if row.Response.State != "" {
			views[i].Holder = new(viewHolder(row.Response, names))
		}
		if lines {
			points := make([]pointView, len(row.Trend))
			for n, point := range row.Trend {
				points[n] = pointView{validate.FormatInstant(point.At), point.Value}
			}
			views[i].Trend = &points
		}
	}
	return nil
}

func viewConcern(c triage.Concern) concernView {
	view := concernView{
		State: string(c.State), Type: orNull(c.Type), Rule: orNull(c.Rule), Values: map[string]float64{}, Change: c.Change,
		MeasuredAt: instantOrNull(c.MeasuredAt), Bounds: boundsView{c.Limits.CriticalLow, c.Limits.Low, c.Limits.High, c.Limits.Critical}, Reasons: []reasonView{},
	}
	for _, v := range c.Values {
		view.Values[v.Parameter.Column] = v.Value
	}
	if of := c.Parameter(); of != nil {
		view.Parameter, view.Unit = new(of.Column), new(of.Range.Unit)
	} else if c.Change != nil {
		view.Parameter, view.Unit = new(vitals.WeightKg.Column), new(vitals.WeightKg.Range.Unit)
	}
	for _, reason := range c.Reasons {
		view.Reasons = append(view.Reasons, reasonView{reason.Code, reason.Text, instantOrNull(reason.Since)})
	}
	return view
}

func viewHolder(h triage.Response, names map[string]collections.UserName) holderView {
	view := holderView{
		State: string(h.State), By: orNull(h.By), Since: instantOrNull(h.Since), Until: instantOrNull(h.Until), Priority: orNull(h.Priority),
	}
	if name, known := names[h.By]; known {
		view.Name = new(name.First.Reveal() + " " + name.Last.Reveal())
	}
	return view
}
