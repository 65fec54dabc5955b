package routes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type triageView struct {
	PatientID            string `json:"patient_id"`
	PatientName          string `json:"patient_name"`
	MRN                  string `json:"mrn"`
	RiskScore            int    `json:"risk_score"`
	RiskLevel            string `json:"risk_level"`
	UnacknowledgedAlerts int    `json:"unacknowledged_alerts"`
	// These fields break ties in the order of the list, so that a live client can keep the order.
	UnacknowledgedCritical int                `json:"unacknowledged_critical"`
	OldestUnacknowledgedAt *string            `json:"oldest_unacknowledged_at"`
	LatestVitals           triage.Latest      `json:"latest_vitals"`
	LastReviewedAt         *string            `json:"last_reviewed_at"`
	LastReviewedBy         *string            `json:"last_reviewed_by"`
	ActiveEscalations      int                `json:"active_escalations"`
	LastReadingAt          *string            `json:"last_reading_at"`
	NeedsReview            bool               `json:"needs_review"`
	NeedsThresholds        bool               `json:"needs_thresholds"`
	Hold                   *patients.HoldView `json:"hold"`
	// Provisional are bounds of undecided templates that are in force, to be decided on by DecideBy.
	Provisional []alerts.ProvisionalBound `json:"provisional"`
	DecideBy    *string                   `json:"decide_by"`
	// Only on the pages of the list, not on the live topic.
	NeedsTargetWeight *bool           `json:"needs_target_weight,omitempty"`
	ProposedTargetKg  *float64        `json:"proposed_target_kg,omitempty"`
	RiskFactors       []triage.Factor `json:"risk_factors"`
	Handling          *string         `json:"handling"`
	Trends            triage.Trends   `json:"trends,omitzero"` // on request
	// Details of the row, on request and on the live topic, there without the trend.
	Concern *concernView `json:"concern,omitempty"`
	Trend   *[]pointView `json:"trend,omitempty"`
	Holder  *holderView  `json:"holder,omitempty"`
}

func viewTriage(row triage.Row, names map[string]patients.Name) triageView {
	name := names[row.PatientID]
	view := triageView{
		PatientID: row.PatientID, PatientName: name.FullName(), MRN: name.MRN, RiskScore: row.RiskScore, RiskLevel: row.RiskLevel,
		UnacknowledgedAlerts: row.UnacknowledgedAlerts, UnacknowledgedCritical: row.UnacknowledgedCritical, LatestVitals: row.Latest.Public(),
		LastReviewedAt: instantOrNull(row.LastReviewedAt), LastReviewedBy: orNull(row.LastReviewedBy),
		ActiveEscalations: row.ActiveEscalations, LastReadingAt: instantOrNull(row.LastReadingAt),
		NeedsReview: row.NeedsReview, NeedsThresholds: row.NeedsThresholds(), RiskFactors: row.Factors,
		Provisional: row.Provisional, DecideBy: instantOrNull(triage.DecideBy(row.ProvisionalSince)), Handling: orNull(string(triage.CriticalStatusFor(row.RiskScore))),
	}
	if row.UnacknowledgedAlerts > 0 {
		view.OldestUnacknowledgedAt = instantOrNull(row.OldestUnacknowledgedAt)
	}
	return view
}

func (a *api) listTriage(c *web.Call) error {
	query, err := a.readTriageQuery(c)
	if err != nil {
		return err
	}
	var version collections.ListVersion // read before all other data of the page
	key := query.key(c)
	if query.plain {
		if version, err = collections.ReadListVersion(c.App); err != nil {
			return err
		}
		if page, isCached := a.pages.Get(key, version); isCached {
			return page.show(c)
		}
	}
	page, total, err := triage.List(c.App, query.filter, query.paging.Offset(), query.paging.Size)
	if err != nil {
		return err
	}
	views, err := viewTriagePage(c.Now)(c.App, page)
	if err != nil {
		return err
	}
	ids := web.Map(page, func(row triage.Row) string { return row.PatientID })
	targets, err := templates.MissingTargets(c.App, ids, a.Zone, c.Now)
	if err != nil {
		return err
	}
	for i := range views {
		missing, needsTarget := targets[ids[i]]
		views[i].NeedsTargetWeight, views[i].ProposedTargetKg = &needsTarget, missing.ProposedKg
	}
	if query.trends {
		trends, err := triage.ReadTrends(c.App, ids)
		if err != nil {
			return err
		}
		for i := range views {
			views[i].Trends = trends[ids[i]]
		}
	}
	if query.concern {
		if err := addRowDetails(c.Request.Context(), c.App, views, true, c.Now); err != nil {
			return err
		}
	}
	result := triagePage{patients: ids}
	result.answer, result.missing = web.EncodePage(c, query.paging, total, views)
	if query.plain {
		a.pages.store(key, version, views, result)
	}
	return result.show(c)
}

// triageQuery is a parsed query of the list. A plain query depends only on the list and its names; row details also
// depend on the time, and a search on the patient directory.
type triageQuery struct {
	filter                 triage.Filter
	paging                 web.Paging
	trends, concern, plain bool
}

func (a *api) readTriageQuery(c *web.Call) (query triageQuery, err error) {
	q, p := c.Listing()
	query = triageQuery{paging: p, filter: triage.Filter{
		RiskLevel:      q.OneOf("risk_level", string(triage.RiskCritical), string(triage.RiskWarning), string(triage.RiskNormal), string(triage.RiskNoData)),
		Unacknowledged: q.Boolean("has_unack_alerts"), NeedsReview: q.Boolean("needs_review"), Escalated: q.IsTrue("escalated"),
		Order: triage.Order(q.Ordering(string(triage.BySeverity), string(triage.ByLeastRisk), string(triage.ByOldestReading), string(triage.ByNewestReading))),
	}}
	if mine := q.IsTrue("mine"); mine || a.confinedToTeams(c) {
		query.filter.CareTeamOf = c.Caller.RecordID
	}
	only, search := q.PatientID(), q.Text("search", 100)
	query.trends, query.concern = q.IsTrue("trends"), q.IsTrue("concern")
	if ids := q.PatientIDs(); ids != nil {
		query.filter.PatientIDs = ids
	}
	query.plain = only == "" && query.filter.PatientIDs == nil && search == "" && !query.trends && !query.concern
	if err := q.Err(); err != nil {
		return query, err
	}
	if search != "" {
		if query.filter.PatientIDs, err = patients.Search(a.Directory, search, maxSearchMatches); err != nil {
			return query, err
		}
	}
	if only != "" {
		query.filter.CareTeamOf, query.filter.PatientIDs = "", []string{only}
		err = a.authorizePatient(c, only)
	}
	return query, err
}

// maxSearchMatches limits how many patients a search considers; a search with more matches is too broad.
const maxSearchMatches = 1000

// viewTriagePage renders rows with the patients' names and their holds in force.
func viewTriagePage(now time.Time) func(core.App, []triage.Row) ([]triageView, error) {
	return func(app core.App, page []triage.Row) ([]triageView, error) {
		ids := distinct(page, func(row triage.Row) string { return row.PatientID })
		names, err := patients.Names(app, ids)
		if err != nil {
			return nil, err
		}
		holds, err := collections.HoldsInForce(app, ids, now)
		views := web.Map(page, func(row triage.Row) triageView { return viewTriage(row, names) })
		for i, row := range page {
			if hold, held := holds[row.PatientID]; held {
				views[i].Hold = patients.ViewHold(hold)
			}
		}
		return views, err
	}
}

// statsView adds the caller's own figures to the totals.
type statsView struct {
	triage.Stats
	PatientsMine int `json:"patients_mine"`
}

func (a *api) readTriageStats(c *web.Call) error {
	team, err := a.careTeamFilter(c, "")
	if err != nil {
		return err
	}
	stats, err := triage.ReadStats(c.App, team, collections.StartOfDay(c.Now.In(a.Zone)))
	if err != nil {
		return err
	}
	mine, err := collections.CountListedOfTeam(c.App, c.Caller.RecordID)
	return c.Respond(statsView{stats, mine}, err)
}

func (a *api) reviewPatient(c *web.Call, patient *collections.Patient) error {
	type reviewBody struct {
		Notes validate.String `json:"notes"`
	}
	notes, err := web.ReadOptional(c, func(body reviewBody, checks *validate.Checks) phi.Text {
		validate.NotNull(checks, "notes", body.Notes)
		return phi.Text(checks.Text("notes", body.Notes, validate.Optional(maxReviewNotes).Multiline()))
	})
	if err != nil {
		return err
	}
	return a.showReviewed(c, patient, triage.Review(c.App, patient.Id, notes, c.Actor(), c.Now))
}

func (a *api) undoReview(c *web.Call, patient *collections.Patient) error {
	return a.showReviewed(c, patient, triage.UndoReview(c.App, patient.Id, c.Actor(), c.Now))
}

// showReviewed answers with the patient's row.
func (a *api) showReviewed(c *web.Call, patient *collections.Patient, err error) error {
	if err != nil {
		return err
	}
	rows, err := triage.Find(c.App, patient.Id)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fault.Missing()
	}
	return show(c, c.OK, viewTriagePage(c.Now))(rows[0], nil)
}

// maxReviewNotes is in characters, the limit of an audit entry's reason.
const maxReviewNotes = 2000

// LiveViews renders records for the live list as the endpoints do. Without a clock it leaves out the row details.
type LiveViews struct{ Clock func() time.Time }

var _ realtime.Views = LiveViews{}

// Patients implements [realtime.Views].
func (l LiveViews) Patients(app core.App, ids []string) (map[string]realtime.View, error) {
	rows, err := triage.Find(app, ids...)
	if err != nil {
		return nil, err
	}
	var now time.Time
	if l.Clock != nil {
		now = l.Clock()
	}
	shown, err := viewTriagePage(now)(app, slices.DeleteFunc(rows, func(row triage.Row) bool { return !row.Listed }))
	if err == nil && l.Clock != nil {
		err = addRowDetails(context.Background(), app, shown, false, now)
	}
	views := make(map[string]realtime.View, len(shown))
	for _, view := range shown {
		views[view.PatientID] = realtime.View{PatientID: view.PatientID, Data: view}
	}
	return views, err
}

// Alerts implements [realtime.Views].
func (LiveViews) Alerts(app core.App, ids []string) (map[string]realtime.View, error) {
	rows, err := collections.AlertsByID(app, ids)
	return liveViews(app, rows, err, viewLiveAlerts)
}

// Escalations implements [realtime.Views].
func (LiveViews) Escalations(app core.App, ids []string) (map[string]realtime.View, error) {
	rows, err := collections.EscalationsByID(app, ids)
	return liveViews(app, rows, err, viewEscalations)
}

// liveViews renders records by id, without unreadable ones; the list endpoint counts those.
func liveViews[R patientRecord, V any](app core.App, rows []R, err error, view func(core.App, []R) ([]V, error)) (map[string]realtime.View, error) {
	if err != nil {
		return nil, err
	}
	rows, _ = collections.ReadableOnly(rows)
	views, err := view(app, rows)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]realtime.View, len(rows))
	for i, row := range rows {
		shown[row.ProxyRecord().Id] = realtime.View{PatientID: row.PatientID(), Data: views[i]}
	}
	return shown, nil
}

// triagePage is an encoded page and the patients it names. It refuses to print.
type triagePage struct {
	patients []string
	answer   []byte
	missing  error // set for a page beyond the end of the list
}

// Format prints none of the page.
func (triagePage) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[page]") }

// LogValue logs none of the page.
func (triagePage) LogValue() slog.Value { return slog.StringValue("[page]") }

// show records the patients shown, then answers. This holds for cached pages too.
func (p triagePage) show(c *web.Call) error {
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, "", p.patients...); err != nil {
		return err
	}
	if p.missing != nil {
		return p.missing
	}
	return c.OKEncoded(p.answer)
}

// triagePages caches plain pages until the list changes. Source: docs/decisions/triage.md, "Cached pages".
type triagePages struct {
	*async.PageCache[collections.ListVersion, triagePage]
}

// maxCachedBytes limits the cache; a page of twenty patients has about 12,000 bytes.
const maxCachedBytes = 4 << 20

func newTriagePages() triagePages {
	return triagePages{async.NewPageCache[collections.ListVersion, triagePage](maxCachedBytes)}
}

// store caches a page, unless a name on it could not be decrypted, or a hold on it ends without a change of the list.
func (p triagePages) store(key string, state collections.ListVersion, views []triageView, page triagePage) {
	passing := slices.ContainsFunc(views, func(v triageView) bool { return v.PatientName == collections.UnreadableText || v.Hold != nil })
	if page.missing == nil && !passing {
		p.Put(key, state, page, len(page.answer)+64*len(page.patients))
	}
}

// key holds everything that a page depends on except the version of the list: the care-team limit and the query,
// including the parameters that its links repeat. The role is checked earlier.
func (q triageQuery) key(c *web.Call) string {
	return q.filter.CareTeamOf + " " + c.Request.URL.EscapedPath() + "?" + c.Request.URL.RawQuery
}
