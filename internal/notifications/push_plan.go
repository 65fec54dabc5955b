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

// planPushes decides for each new list entry which devices get a push. It processes entries in order, because a push for one may cover the next. No
// other round plans at the same time, so the state is read before the transaction.
func (d *Dispatcher) planPushes(ctx context.Context, app core.App, p *dispatchRound) error {
	for ctx.Err() == nil {
		now := d.Clock()
		entries, err := collections.UnplannedNotifications(app, now, batchSize)
		if err != nil || len(entries) == 0 {
			return err
		}
		people, err := d.loadPeople(app, entries)
		if err != nil {
			return err
		}
		err = async.JoinTx(app, func(tx core.App) error {
			tx = d.statements.In(tx)
			for _, entry := range entries {
				if err := d.planEntry(tx, entry, people[entry.User], &p.texts, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("plan pushes: %w", err)
		}
		if len(entries) < batchSize {
			return nil
		}
	}
	return ctx.Err()
}

// person holds the data of a user that planning needs.
type person struct {
	preferences Preferences
	zone        *time.Location
	tokens      []*collections.PushToken
	language    string // "" for staff
}

// loadPeople loads the users of the entries, with one query per table.
func (d *Dispatcher) loadPeople(app core.App, entries []collections.UnplannedNotification) (map[string]*person, error) {
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
		preferences := decodePreferences(chosen[id], zones[id])
		people[id] = &person{preferences: preferences, zone: preferences.location(d.Zone)}
	}
	languages := map[string]string{}
	if slices.ContainsFunc(entries, func(e collections.UnplannedNotification) bool { return types[e.Type].spanish[0] != "" }) {
		if languages, err = languagesOf(app, ids); err != nil {
			return nil, err
		}
	}
	for id, to := range people {
		to.language = languages[id]
	}
	for _, token := range tokens {
		people[token.UserID()].tokens = append(people[token.UserID()].tokens, token)
	}
	return people, nil
}

func (d *Dispatcher) planEntry(tx core.App, entry collections.UnplannedNotification, to *person, texts *textSanitizer, now time.Time) error {
	choice := to.preferences.channel(entry.Channel, entry.Type, entry.Severity)
	if len(to.tokens) == 0 { // no device to push to
		return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
	}
	if entry.PatientGone && types[entry.Type].endsWithMonitoring {
		return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
	}
	covered, err := collections.HasCoveringPush(tx, entry, now)
	if err != nil {
		return err
	}
	if covered || types[entry.Type].isInAppOnly || d.isListedOnly(entry) { // another push about the escalation, or about a similar alert, covers this event
		return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
	}
	title, body := pushWords(entry, to.language)
	body, err = texts.sanitize(tx, body, entry.Channel, entry.Patient, entry.IsResponsible)
	if err != nil {
		return err
	}
	for _, token := range to.tokens {
		err := collections.InsertPush(tx, collections.PushDraft{
			Notification: entry.ID, Token: token.Id, User: entry.User, Type: entry.Type, Title: title, Body: body,
			Status: d.initialStatus(entry, to, choice, token, now),
		}, now)
		if err != nil {
			return err
		}
	}
	return collections.MarkPlanned(tx, entry.ID, choice.InApp, now)
}

// isListedOnly reports whether an entry is about a warning that the practice does not push. Source: docs/decisions/notifications.md, "Pages for
// warnings".
func (d *Dispatcher) isListedOnly(entry collections.UnplannedNotification) bool {
	return entry.Channel == Alerts && (entry.IsListed || d.NeverPushWarnings && entry.AlertLevel == "warning")
}

// initialStatus returns the state in which a push is created.
func (d *Dispatcher) initialStatus(entry collections.UnplannedNotification, to *person, choice Channel, token *collections.PushToken, now time.Time) string {
	quiet := to.preferences.QuietHours
	silent := quiet.IsSilent(entry.Channel, now.In(to.zone))
	if entry.Channel == DailyDigest { // the digest is quiet if its own time is
		silent = quiet.isSilentAt(DailyDigest, to.preferences.Channels.DailyDigest.Time)
	}
	switch {
	case !choice.Push:
		return collections.PushSkippedPreference
	case silent:
		return collections.PushSkippedQuietHours
	case token.Type() == development:
		return collections.PushSent // development tokens only record the push
	case !d.Push.Delivers(token.Type()):
		return collections.PushNoTransport
	}
	return collections.PushPending
}

// textSanitizer sanitizes push texts and caches the results, because recipients of an event get the same text.
type textSanitizer struct {
	mu    sync.Mutex
	cache map[sanitizeKey]string
}

type sanitizeKey struct {
	text, channel, patient string
	isResponsible          bool
}

// maxBodyLength bounds the stored text of a push.
const maxBodyLength = 500

// sanitize removes everything from a text that identifies the patient.
func (s *textSanitizer) sanitize(app core.App, text, channel, patientID string, isResponsible bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := sanitizeKey{text, channel, patientID, isResponsible}
	if clean, done := s.cache[about]; done {
		return clean, nil
	}
	generic := genericTexts[channel][1]
	known, err := knownIdentifiers(app, patientID, isResponsible)
	if err != nil && !collections.IsUnreadable(err) {
		return "", err
	}
	clean := phi.Sanitize(text, generic, known...)
	if err != nil || len([]rune(clean)) > maxBodyLength { // unknown identifiers cannot be removed
		clean = generic
	}
	if s.cache == nil {
		s.cache = map[sanitizeKey]string{}
	}
	s.cache[about] = clean
	return clean, nil
}

// knownIdentifiers returns the identifiers of the patient concerned.
func knownIdentifiers(app core.App, patientID string, isResponsible bool) ([]phi.KnownPatient, error) {
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
	known := phi.KnownPatient{
		First: d.FirstName, Last: d.LastName, IsInRecipientsCare: isResponsible,
		Identifiers: []string{patient.MRN(), patient.ExternalID(), d.Phone, d.Email},
	}
	if d.Address != nil {
		known.Identifiers = append(known.Identifiers, d.Address.Line1, d.Address.Line2)
	}
	return []phi.KnownPatient{known}, nil
}
