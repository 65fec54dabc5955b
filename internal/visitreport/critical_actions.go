package visitreport

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// actionText describes the response to a critical alert: who acknowledged it and when, the notes, and its escalation.
func (g *builder) actionText(alert *collections.Alert) (phi.Text, error) {
	var parts []string
	if outcome := alert.Outcome(); outcome != "" {
		parts = append(parts, strings.ReplaceAll(outcome, "_", " "))
	}
	for _, note := range []phi.Text{alert.ClinicalNote(), alert.Notes()} {
		if note != "" {
			parts = append(parts, strings.TrimRight(strings.Join(strings.Fields(note.Reveal()), " "), "."))
		}
	}
	if at := alert.AcknowledgedAt(); !at.IsZero() && alert.AcknowledgedBy() != alerts.System {
		by, err := g.nameOf(alert.AcknowledgedBy())
		if err != nil {
			return "", err
		}
		parts = append(parts, by+", "+g.localStamp(at))
	} else if alert.ResolvedAt().IsZero() {
		parts = append(parts, "not answered")
	}
	if id := alert.EscalationID(); id != "" {
		escalated, err := collections.FindEscalation(g.app, id)
		if err != nil {
			return "", err
		}
		parts = append(parts, "escalation ("+escalated.Priority()+") "+strings.ReplaceAll(escalated.Status(), "_", " "))
	}
	if at := alert.ResolvedAt(); !at.IsZero() {
		if alert.ResolvedBy() == alerts.System {
			parts = append(parts, "closed by later readings")
		} else {
			parts = append(parts, "closed "+g.localStamp(at))
		}
	}
	return phi.Text(sentence(strings.Join(parts, "; "))), nil
}

// sentence adds a capital and a period.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

// nameOf returns a colleague's name by e-mail address; the address if the account is gone.
func (g *builder) nameOf(email string) (string, error) {
	if name, ok := g.names[email]; ok {
		return name, nil
	}
	if g.names == nil {
		g.names = map[string]string{}
	}
	g.names[email] = email
	user, err := collections.FindUserByEmail(g.app, email)
	if collections.IsNotFound(err) {
		return email, nil
	}
	if err != nil {
		return "", err
	}
	g.names[email] = cmp.Or(initial(user.FirstName(), user.LastName()), email)
	return g.names[email], nil
}

// initial returns "N. Okafor".
func initial(first, last string) string {
	if runes := []rune(first); len(runes) > 0 {
		return string(runes[0]) + ". " + last
	}
	return last
}

// loadNotes loads calls and other time entries that have a note. A role that reads only its own time entries sees the team's notes without
// the minutes of others. Source: docs/decisions/roles.md, "Endpoint permissions".
func (g *builder) loadNotes() error {
	filter := collections.TimeFilter{From: g.from, PatientID: g.patient.Id}
	if g.isOfPeriod() {
		filter.To = g.end
	}
	page, _, err := collections.PageOfTimeEntries(g.app, filter, 0, maxNotes)
	if err != nil {
		return err
	}
	page = slices.DeleteFunc(page, func(t *collections.TimeEntry) bool { return t.Notes() == "" })
	ids := make([]string, len(page))
	for i, t := range page {
		ids[i] = t.UserRecordID()
	}
	names, err := collections.UserNames(g.app, ids)
	if err != nil {
		return err
	}
	for _, t := range page {
		name := names[t.UserRecordID()]
		by := initial(name.First.Reveal(), name.Last.Reveal())
		if minutes := t.Seconds() / 60; minutes > 0 && (g.request.MinutesOf == "" || g.request.MinutesOf == t.UserRecordID()) {
			by += ", " + vitals.FormatNumber(float64(minutes)) + " min"
		}
		g.notes = append(g.notes, Note{t.StartedAt().In(g.zone), by, phi.Text(strings.Join(strings.Fields(t.Notes().Reveal()), " "))})
	}
	return nil
}
