package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Scope narrows counts to the patients of one person's care teams; "" is all patients.
type Scope string

func (s Scope) and(patientColumn string) dbx.Expression {
	if s == "" {
		return dbx.NewExp("TRUE")
	}
	return OnCareTeam(patientColumn, string(s))
}

// OwnPatients counts the active patients of a person's care teams.
func OwnPatients(app core.App, userID string) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From(Patients).Where(dbx.And(dbx.NewExp("active = TRUE AND deleted_at = ''"), OnCareTeam("id", userID))))
}

// AlertsSince counts alerts by level.
func AlertsSince(app core.App, scope Scope, since time.Time) (map[string]int, error) {
	return readMap[int]("count alerts", app.DB().Select("level", "COUNT(*) AS count").From(Alerts).
		Where(dbx.And(dbx.NewExp("created_at >= {:since}", dbx.Params{"since": Instant(since)}), scope.and("patient"))).GroupBy("level"))
}

// OpenEscalations counts those that wait or are worked on.
func OpenEscalations(app core.App, scope Scope) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From(Escalations).
		Where(dbx.And(dbx.NewExp("status IN ('open', 'in_progress')"), scope.and("patient"))))
}

// PatientsToReview counts patients whose state asks for a review.
func PatientsToReview(app core.App, scope Scope) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From(TriageScores).
		Where(dbx.And(dbx.NewExp("listed = TRUE AND needs_review = TRUE"), scope.and("patient"))))
}

// PatientsBehind counts active patients with a device and with readings on fewer than so many days since the day, YYYY-MM-DD.
func PatientsBehind(app core.App, scope Scope, since string, days int) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From("patients p").Where(dbx.And(
		dbx.NewExp(`p.active = TRUE AND p.deleted_at = '' AND
			EXISTS (SELECT 1 FROM device_assignments a WHERE a.patient = p.id AND a.unassigned_at = '') AND
			(SELECT COUNT(DISTINCT r.day) FROM reading_days r WHERE r.patient = p.id AND r.day >= {:since}) < {:days}`,
			dbx.Params{"since": since, "days": days}), scope.and("p.id"))))
}

// BillingByStatus counts billing entries by where they are in their life.
func BillingByStatus(app core.App) (map[string]int, error) {
	return readMap[int]("count billing entries", app.DB().Select("lifecycle_status", "COUNT(*) AS count").From(BillingEntries).
		Where(dbx.In("lifecycle_status", "pending_review", "reviewed", "denied")).GroupBy("lifecycle_status"))
}

func countOf(query *dbx.SelectQuery) (n int, err error) {
	err = query.Row(&n)
	return n, wrap(err, "count")
}
