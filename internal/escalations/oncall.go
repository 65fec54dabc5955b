// Package oncall knows who is on call: the weekly rota of the practice by the clocks of its time zone, and the turns that somebody takes over for a
// while. It refuses to know what people are called for, and how they are told.
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

// roles may be on call: they can be given an escalation.
var roles = []string{string(authz.Provider), string(authz.Nurse), string(authz.ClinicalManager), string(authz.Admin)}

// Read returns the rota; an empty one in the practice's time zone while nobody has set it.
func Read(app core.App, practice *time.Location) (Rota, error) {
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

// Now says who is on call. Whose account may not be used any more is not.
func Now(app core.App, practice *time.Location, now time.Time) (Duty, error) {
	rota, err := Read(app, practice)
	if err != nil || len(rota.Shifts)+len(rota.Overrides) == 0 {
		return Duty{}, err
	}
	can, err := able(app)
	if err != nil {
		return Duty{}, err
	}
	return rota.At(now, can), nil
}

// able tells of a user, by record id, whether it is somebody who can be on call.
func able(app core.App) (func(user string) bool, error) {
	ids, err := collections.ActiveUsers(app, roles, "", "")
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	return func(user string) bool { return known[user] }, nil
}

// msgUser refuses somebody who cannot be on call.
const msgUser = "Must be the id of an active provider, nurse, clinical manager or administrator."

// Set replaces the rota, in one transaction with its audit entry. Somebody who cannot be on call is a validation fault. A rota that says what the
// stored one does changes nothing.
func Set(app core.App, draft RotaDraft, practice *time.Location, by audit.Actor, now time.Time) (rota Rota, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		stored, err := Read(tx, practice)
		if err != nil {
			return err
		}
		if err := draft.checkPeople(tx, stored); err != nil {
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
		changes := difference(before, after)
		if len(changes) > 0 {
			after.UpdatedAt, after.UpdatedBy = collections.Instant(now), by.Email
			if err := collections.StoreOnCall(tx, after); err != nil {
				return err
			}
			entry := audit.Entry{Event: audit.OnCallUpdate, Actor: by, ResourceType: audit.ResourceOnCall, Changes: changes}
			if err := audit.Append(tx, entry, now); err != nil {
				return err
			}
		}
		rota, err = Read(tx, practice)
		return err
	})
	return rota, err
}

// checkPeople looks whether everybody in it can be on call. Somebody who stood in the rota before may stay in it: nobody must clean it up in the middle
// of the night to hand over, and whoever cannot be on call is passed over.
func (d RotaDraft) checkPeople(tx core.App, stored Rota) error {
	active, err := able(tx)
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
			fields.Add(fmt.Sprintf("shifts.%d.user_id", i), msgUser)
		}
	}
	for i, o := range d.Overrides {
		if !can(o.User) {
			fields.Add(fmt.Sprintf("overrides.%d.user_id", i), msgUser)
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

// difference is what of the rota changes, as the audit trail keeps it.
func difference(before, after collections.OnCallRow) audit.Changes {
	changes := audit.Changes{}
	changes.Note("time_zone", before.TimeZone, after.TimeZone)
	changes.Note("shifts", before.Shifts, after.Shifts)
	changes.Note("overrides", before.Overrides, after.Overrides)
	return changes
}

// Person is somebody whom the rota names.
type Person struct {
	User   string // record id
	Name   phi.Text
	Active bool // can be on call
}

// People are all whom the rota names, each once, in the order of their ids.
func People(app core.App, rota Rota) (people []Person, err error) {
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
	can, err := able(app)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		name := phi.Text(strings.TrimSpace(names[id].First.Reveal() + " " + names[id].Last.Reveal()))
		people = append(people, Person{User: id, Name: name, Active: can(id)})
	}
	return people, nil
}
