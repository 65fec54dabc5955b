package escalations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// onCallRoles may be on call; they can be assigned escalations.
var onCallRoles = []string{string(authz.Provider), string(authz.Nurse), string(authz.ClinicalManager), string(authz.Admin)}

// ReadRota returns the rota; an empty one in the practice's time zone until one is set.
func ReadRota(app core.App, practice *time.Location) (Rota, error) {
	row, err := collections.FindOnCall(app)
	if err != nil || row.TimeZone == "" {
		return Rota{Zone: practice}, err
	}
	rota := Rota{Zone: collections.Zone(row.TimeZone, practice), UpdatedAt: row.Changed(), UpdatedBy: row.UpdatedBy}
	if err := json.Unmarshal([]byte(row.Shifts), &rota.Shifts); err != nil {
		return Rota{}, fmt.Errorf("read the shifts of the rota: %w", err)
	}
	if err := json.Unmarshal([]byte(row.Overrides), &rota.Overrides); err != nil {
		return Rota{}, fmt.Errorf("read the overrides of the rota: %w", err)
	}
	return rota, nil
}

// OnCallNow returns who is on call. Users with a deactivated account are skipped.
func OnCallNow(app core.App, practice *time.Location, now time.Time) (Duty, error) {
	rota, err := ReadRota(app, practice)
	if err != nil || len(rota.Shifts)+len(rota.Overrides) == 0 {
		return Duty{}, err
	}
	can, err := eligibleUsers(app)
	if err != nil {
		return Duty{}, err
	}
	return rota.At(now, can), nil
}

// eligibleUsers returns a function that reports whether a user, by record id, can be on call.
func eligibleUsers(app core.App) (func(user string) bool, error) {
	ids, err := collections.ActiveUsers(app, onCallRoles, "", "")
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool, len(ids))
	for _, id := range ids {
		found[id] = true
	}
	return func(user string) bool { return found[user] }, nil
}

const msgIneligible = "Must be the id of an active provider, nurse, clinical manager or administrator."

// SetRota replaces the rota, in one transaction with its audit entry. A user who cannot be on call is a validation fault. An equal rota
// changes nothing.
func SetRota(app core.App, draft RotaDraft, practice *time.Location, by audit.Actor, now time.Time) (rota Rota, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		stored, err := ReadRota(tx, practice)
		if err != nil {
			return err
		}
		if err := draft.checkEligible(tx, stored); err != nil {
			return err
		}
		before, err := collections.FindOnCall(tx)
		if err != nil {
			return err
		}
		after, err := draft.row()
		if err != nil {
			return err
		}
		changes := rotaChanges(before, after)
		if len(changes) > 0 {
			after.UpdatedAt, after.UpdatedBy = collections.FormatInstant(now), by.Email
			if err := collections.StoreOnCall(tx, after); err != nil {
				return err
			}
			entry := audit.Entry{Event: audit.OnCallUpdate, Actor: by, ResourceType: audit.ResourceOnCall, Changes: changes}
			if err := audit.Append(tx, entry, now); err != nil {
				return err
			}
		}
		rota, err = ReadRota(tx, practice)
		return err
	})
	return rota, err
}

// checkEligible rejects users who cannot be on call. Users already in the stored rota may stay: a hand-over at night must not require
// cleaning it up, and ineligible users are skipped.
func (d RotaDraft) checkEligible(tx core.App, stored Rota) error {
	active, err := eligibleUsers(tx)
	if err != nil {
		return err
	}
	can := func(user string) bool {
		return active(user) || slices.ContainsFunc(stored.Shifts, func(s Shift) bool { return s.User == user }) ||
			slices.ContainsFunc(stored.Overrides, func(o Override) bool { return o.User == user })
	}
	fields := fault.Fields{}
	for i, s := range d.Shifts {
		if !can(s.User) {
			fields.Add(fmt.Sprintf("shifts.%d.user_id", i), msgIneligible)
		}
	}
	for i, o := range d.Overrides {
		if !can(o.User) {
			fields.Add(fmt.Sprintf("overrides.%d.user_id", i), msgIneligible)
		}
	}
	return fields.Err()
}

func (d RotaDraft) row() (row collections.OnCallRow, err error) {
	shifts, err := json.Marshal(d.Shifts)
	if err != nil {
		return row, fmt.Errorf("encode the shifts of the rota: %w", err)
	}
	overrides, err := json.Marshal(d.Overrides)
	if err != nil {
		return row, fmt.Errorf("encode the overrides of the rota: %w", err)
	}
	return collections.OnCallRow{TimeZone: d.TimeZone, Shifts: string(shifts), Overrides: string(overrides)}, nil
}

// rotaChanges returns the changes for the audit trail.
func rotaChanges(before, after collections.OnCallRow) audit.Changes {
	changes := audit.Changes{}
	changes.Record("time_zone", before.TimeZone, after.TimeZone)
	changes.Record("shifts", before.Shifts, after.Shifts)
	changes.Record("overrides", before.Overrides, after.Overrides)
	return changes
}

// RotaPerson is a user named in the rota.
type RotaPerson struct {
	User   string // record id
	Name   phi.Text
	Active bool // can be on call
}

// RotaPeople returns the users named in the rota, each once, in the order of their ids.
func RotaPeople(app core.App, rota Rota) (people []RotaPerson, err error) {
	var ids []string
	for _, s := range rota.Shifts {
		ids = append(ids, s.User)
	}
	for _, o := range rota.Overrides {
		ids = append(ids, o.User)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	names, err := collections.UserNames(app, ids)
	if err != nil {
		return nil, err
	}
	can, err := eligibleUsers(app)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		name := phi.Text(strings.TrimSpace(names[id].First.Reveal() + " " + names[id].Last.Reveal()))
		people = append(people, RotaPerson{User: id, Name: name, Active: can(id)})
	}
	return people, nil
}
