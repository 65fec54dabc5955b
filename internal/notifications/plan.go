package notifications

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/phi"
)

// plan decides for each new entry of a list which devices get a push, one after the other: the push of one may speak for the next. Nobody else plans
// meanwhile, so that what is there is read before the transaction.
func (d *Dispatcher) plan(ctx context.Context, app core.App, p *pass) error {
	for ctx.Err() == nil {
		now := d.Clock()
		entries, err := collections.UnplannedNotifications(app, now, batch)
		if err != nil || len(entries) == 0 {
			return err
		}
		people, err := d.people(app, entries)
		if err != nil {
			return err
		}
		err = async.Along(app, func(tx core.App) error {
			tx = d.statements.In(tx)
			for _, entry := range entries {
				if err := d.planOne(tx, entry, people[entry.User], &p.texts, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("plan pushes: %w", err)
		}
		if len(entries) < batch {
			return nil
		}
	}
	return ctx.Err()
}

// person is what planning has to know of somebody.
type person struct {
	preferences Preferences
	zone        *time.Location
	tokens      []*collections.PushToken
}

// people reads what is known of those whom entries are for, with one query for each thing.
func (d *Dispatcher) people(app core.App, entries []collections.UnplannedNotification) (map[string]*person, error) {
	ids := make([]string, 0, len(entries))
	for _, entry := range entries {
		ids = append(ids, entry.User)
	}
	chosen, err := collections.PreferencesOf(app, ids)
	if err != nil {
		return nil, err
	}
	zones, err := collections.TimeZonesOf(app, ids)
	if err != nil {
		return nil, err
	}
	tokens, err := collections.ActivePushTokens(app, ids)
	if err != nil {
		return nil, err
	}
	people := make(map[string]*person, len(ids))
	for _, id := range ids {
		preferences := stored(chosen[id], zones[id])
		people[id] = &person{preferences: preferences, zone: preferences.location(d.Zone)}
	}
	for _, token := range tokens {
		people[token.UserID()].tokens = append(people[token.UserID()].tokens, token)
	}
	return people, nil
}

func (d *Dispatcher) planOne(tx core.App, entry collections.UnplannedNotification, to *person, texts *cleaner, now time.Time) error {
	choice := to.preferences.channel(entry.Channel, entry.Type, entry.Severity)
	if len(to.tokens) == 0 { // whatever the push would be, it goes nowhere
		return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
	}
	covered, err := collections.HasCoveringPush(tx, entry, now)
	if err != nil {
		return err
	}
	if covered || slices.Contains(inAppOnly, entry.Type) { // the push about the escalation, or about another alert like it, is the one for this event
		return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
	}
	title, text := pushText(entry.Channel, entry.Type)
	body, err := texts.clean(tx, text, entry.Channel, entry.Patient, entry.IsResponsible)
	if err != nil {
		return err
	}
	for _, token := range to.tokens {
		err := collections.InsertPush(tx, collections.PushDraft{
			Notification: entry.ID, Token: token.Id, User: entry.User, Type: entry.Type, Title: title, Body: body,
			Status: d.fate(entry, to, choice, token, now),
		}, now)
		if err != nil {
			return err
		}
	}
	return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
}

// fate is the state in which a push begins.
func (d *Dispatcher) fate(entry collections.UnplannedNotification, to *person, choice Channel, token *collections.PushToken, now time.Time) string {
	quiet := to.preferences.QuietHours
	silent := quiet.Silence(entry.Channel, now.In(to.zone))
	if entry.Channel == DailyDigest { // it comes at a time of its own; what counts is whether that is quiet
		silent = quiet.silence(DailyDigest, to.preferences.Channels.DailyDigest.Time)
	}
	switch {
	case !choice.Push:
		return collections.PushSkippedPreference
	case silent:
		return collections.PushSkippedQuietHours
	case token.Type() == development:
		return collections.PushSent // its record is all there is of it
	case !d.Push.Delivers(token.Type()):
		return collections.PushNoTransport
	}
	return collections.PushPending
}

// cleaner sanitises texts, and remembers: an event says the same to everybody.
type cleaner struct {
	mu   sync.Mutex
	done map[textAbout]string
}

type textAbout struct {
	text, channel, patient string
	yours                  bool
}

// longestBody is what a record of a push can hold.
const longestBody = 500

// clean takes out of a text all that says whom it is about.
func (c *cleaner) clean(app core.App, text, channel, patientID string, yours bool) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about := textAbout{text, channel, patientID, yours}
	if clean, done := c.done[about]; done {
		return clean, nil
	}
	generic := generics[channel][1]
	known, err := knownOf(app, patientID, yours)
	if err != nil && !collections.IsUnreadable(err) {
		return "", err
	}
	clean := phi.Sanitize(text, generic, known...)
	if err != nil || len([]rune(clean)) > longestBody { // what is not known cannot be taken out
		clean = generic
	}
	if c.done == nil {
		c.done = map[textAbout]string{}
	}
	c.done[about] = clean
	return clean, nil
}

// knownOf is the patient whom an event is about.
func knownOf(app core.App, patientID string, yours bool) ([]phi.Known, error) {
	if patientID == "" {
		return nil, nil
	}
	patient, err := collections.FindPatientAnyState(app, patientID)
	if collections.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := collections.Readable(patient.ProxyRecord()); err != nil {
		return nil, err
	}
	d := patient.Demographics()
	known := phi.Known{
		First: d.FirstName, Last: d.LastName, Yours: yours,
		Identifiers: []string{patient.MRN(), patient.ExternalID(), d.Phone, d.Email},
	}
	if d.Address != nil {
		known.Identifiers = append(known.Identifiers, d.Address.Line1, d.Address.Line2)
	}
	return []phi.Known{known}, nil
}
