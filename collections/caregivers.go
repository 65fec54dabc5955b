package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Columns of a caregiver's end.
const (
	CaregiverEndedAt = "ended_at"
	CaregiverEndedBy = "ended_by"
)

// Caregiver is the access of an account to another person's readings. A changed access is a new record.
type Caregiver struct{ core.BaseRecordProxy }

// AsCaregiver converts a record of the caregivers collection.
func AsCaregiver(record *core.Record) *Caregiver { return as[Caregiver](record) }

// CaregiverDraft is an access to store.
type CaregiverDraft struct {
	PatientID, UserID, Relationship, Scope string
	Until                                  string    // the last day, YYYY-MM-DD; "" for no end
	EndsAt                                 time.Time // the end of that day; zero for no end
	GrantedBy                              string    // email address
}

// AddCaregiver stores an access with the next number.
func AddCaregiver(tx core.App, d CaregiverDraft, now time.Time) (*Caregiver, error) {
	c, err := newRecord[Caregiver](tx, Caregivers, map[string]any{
		ColumnPatient: d.PatientID, "user": d.UserID, "relationship": d.Relationship, "scope": d.Scope, "until": d.Until, "ends_at": FormatInstant(d.EndsAt),
		"granted_by": d.GrantedBy, ColumnCreatedAt: FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return c, wrap(tx.Save(c), "store caregiver")
}

// FindCaregiver finds an access of a patient by number.
func FindCaregiver(app core.App, patientID string, number int64) (*Caregiver, error) {
	return find[Caregiver](app, Caregivers, dbx.HashExp{"id": NumberID(number), ColumnPatient: patientID})
}

// CaregiversOf returns the accesses to a patient that were not revoked, oldest first. They may have expired.
func CaregiversOf(app core.App, patientID string) ([]*Caregiver, error) {
	return listOf[Caregiver](app, Caregivers, dbx.HashExp{ColumnPatient: patientID, CaregiverEndedAt: ""}, "id")
}

// CaregiverAccess is an access of an account, for authorization.
type CaregiverAccess struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Scope   string `db:"scope"`
	EndsAt  string `db:"ends_at"` // "" for no end
}

// CaregiverAccesses returns what an account may access as a caregiver, oldest first; the caller compares EndsAt with the time. It leaves out
// deleted and deceased patients.
func CaregiverAccesses(app core.App, userID string) ([]CaregiverAccess, error) {
	return queryAll[CaregiverAccess](app, "find what a caregiver may access", `SELECT c.id, c.patient, c.scope, c.ends_at FROM caregivers c
		JOIN patients p ON p.id = c.patient WHERE c.user = {:user} AND c.ended_at = '' AND p.deleted_at = '' AND p.deceased_at = '' ORDER BY c.id`,
		dbx.Params{"user": userID})
}

func (c *Caregiver) Number() int64        { return Number(c.Id) }
func (c *Caregiver) PatientID() string    { return c.GetString(ColumnPatient) }
func (c *Caregiver) UserID() string       { return c.GetString("user") } // record id
func (c *Caregiver) Relationship() string { return c.GetString("relationship") }
func (c *Caregiver) Scope() string        { return c.GetString("scope") }
func (c *Caregiver) Until() string        { return c.GetString("until") }      // YYYY-MM-DD, or ""
func (c *Caregiver) GrantedBy() string    { return c.GetString("granted_by") } // email address
func (c *Caregiver) EndsAt() time.Time    { return instantOf(c, "ends_at") }   // zero for no end
func (c *Caregiver) CreatedAt() time.Time { return instantOf(c, ColumnCreatedAt) }

// InForce reports whether the access is in force at a time.
func (c *Caregiver) InForce(at time.Time) bool {
	return c.GetString(CaregiverEndedAt) == "" && (c.EndsAt().IsZero() || at.Before(c.EndsAt()))
}

// EndedAt returns when the access was revoked; zero if it was not.
func (c *Caregiver) EndedAt() time.Time { return instantOf(c, CaregiverEndedAt) }

// DatesOfDeath returns the dates of death of patients, YYYY-MM-DD, by id; of the living none.
func DatesOfDeath(app core.App, patients []string) (map[string]string, error) {
	dates, err := readMap[string]("find dates of death", app.DB().Select("id", PatientDeceasedAt).From(Patients).
		Where(AnyOf("id", patients)).AndWhere(dbx.NewExp(PatientDeceasedAt+" != ''")))
	for id, stored := range dates {
		if dates[id], err = OpenValue(stored, Patients, PatientDeceasedAt, id); err != nil {
			return nil, err
		}
	}
	return dates, err
}

// CaregiversInForce keeps accesses that are in force at a time, or those that are not. None is after the patient's death.
func CaregiversInForce(isInForce bool, at time.Time) dbx.Expression {
	return expression(func(bind func(any) string) string {
		inForce := "(ended_at = '' AND (ends_at = '' OR ends_at > " + bind(FormatInstant(at)) + ") AND patient NOT IN (SELECT id FROM patients WHERE deceased_at != ''))"
		if !isInForce {
			return "NOT " + inForce
		}
		return inForce
	})
}

// End revokes the access.
func (c *Caregiver) End(tx core.App, by string, at time.Time) error {
	c.Set(CaregiverEndedAt, FormatInstant(at))
	c.Set(CaregiverEndedBy, by)
	return wrap(tx.Save(c), "end caregiver")
}
