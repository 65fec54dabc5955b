package visitreport

import (
	"cmp"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/phi"
)

// stepWords are the words for the steps of an escalation's history.
var stepWords = map[string]string{
	"opened": "Opened.", "assigned": "Reassigned.", "in_progress": "Taken.", "priority": "Priority changed.", "note": "Note.", "alert_joined": "Worse.",
	"overdue": "Overdue.", "tier_1": "On-call paged.", "tier_2": "Managers paged.", "tier_3": "Everyone paged.", "handed_over": "On-call paged now.",
	"reminded": "Reminded of the overdue note.", "resolved": "Resolved.", "cancelled": "Canceled.",
}

// loadEscalation loads the escalation that the report is about, and its history.
func (g *builder) loadEscalation() (err error) {
	if g.request.EscalationID == "" {
		return nil
	}
	if g.escalation, err = collections.FindEscalation(g.app, g.request.EscalationID); err != nil {
		return err
	}
	if err := collections.Readable(g.escalation.ProxyRecord()); err != nil {
		return err
	}
	histories, err := escalations.Histories(g.app, g.escalation)
	if err != nil {
		return err
	}
	for _, step := range histories[g.escalation.Id] {
		by := "Vigil"
		if step.User != alerts.System {
			if by, err = g.nameOf(step.User); err != nil {
				return err
			}
		}
		text := cmp.Or(stepWords[step.Name], sentence(strings.ReplaceAll(step.Name, "_", " ")))
		details := []string{step.Detail.Reveal()}
		if step.Name == string(escalations.StatusResolved) {
			details = append(details, g.escalation.ResolutionNotes().Reveal())
		}
		for _, detail := range details {
			if detail = strings.Join(strings.Fields(detail), " "); detail != "" {
				text += " " + detail
			}
		}
		g.steps = append(g.steps, Note{step.At.In(g.zone), by, phi.Text(text)})
	}
	return nil
}

// escalationPages draws the escalation and its history on pages of their own.
func (r *Report) escalationPages(s *pdf.Sheet) {
	const bottom = footAt - 9
	if r.escalation == nil {
		return
	}
	s.AddPage()
	y := r.heading(s, left, pageTop, wide, "Escalation ("+r.escalation.Priority()+", "+strings.ReplaceAll(r.escalation.Status(), "_", " ")+")", "")
	y = r.paragraph(s, left, y+1, s.Lines(wide, maxLines, strong, r.escalation.Reason().Reveal()))
	rest, _ := r.drawNotes(s, y+2, bottom, wide, dayAndAt, r.steps)
	for before := len(r.steps) + 1; len(rest) > 0 && len(rest) < before; {
		before = len(rest)
		s.AddPage()
		y := r.heading(s, left, pageTop, wide, "Escalation, continued", "")
		rest, _ = r.drawNotes(s, y, bottom, wide, dayAndAt, rest)
	}
}
