package emrcontext

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

const (
	// maxRead bounds the resources of a type that are read, and maxKept those that are kept, the current and newest first.
	maxRead = 5000
	maxKept = 500
	// encounterDays is how far back encounters are read. Source: docs/decisions/emr.md, "Context".
	encounterDays = 400
	// maxReferences bounds the Medication resources that one chart is read for.
	maxReferences = 50
)

// chart reads one patient's chart. It holds the result of each type, so that one that fails does not hide the others.
type chart struct {
	client  *emr.Client
	emrID   string
	now     time.Time
	granted []string
	content Content
	before  Content // what an earlier read found
	read    int     // types that the EMR answered
	failure error   // the last failure without an answer
}

// readChart reads the chart of a patient of the EMR within a time, each type within a third of it. Types that it did not get are failed. An error means
// that the EMR gave no answer at all, or that the caller left.
func readChart(caller context.Context, client *emr.Client, emrID string, before Content, within time.Duration, now time.Time) (Content, error) {
	ctx, cancel := context.WithTimeout(caller, within)
	defer cancel()
	c := &chart{client: client, emrID: emrID, now: now, content: emptyContent(), before: before}
	patient, err := client.ReadPatient(ctx, emrID)
	if refusal, ok := errors.AsType[*emr.Error](err); ok && refusal.Code == emr.CodePatientNotFound || err == nil && patient.Replaced {
		c.content.Unavailable = append(c.content.Unavailable, Unavailable{"Patient", NotFound})
		return c.content, nil
	}
	if err != nil {
		return Content{}, err
	}
	if patient.Deceased {
		c.content.Deceased = &Death{Date: patient.DeceasedAt}
	}
	if c.granted, err = client.GrantedChart(ctx); err != nil {
		return Content{}, err
	}
	for _, read := range []func(context.Context){c.readConditions, c.readMedications, c.readEncounters, c.readOrders, c.readCoverage, c.readAllergies} {
		part, cancel := context.WithTimeout(ctx, within/3)
		read(part)
		cancel()
	}
	if c.failure != nil && (c.read == 0 || caller.Err() != nil) {
		return Content{}, c.failure
	}
	return c.content, nil
}

// search returns the resources of a type that are the patient's. answered is false where nothing was read; the reason is then recorded.
func (c *chart) search(ctx context.Context, resourceType string, params, fallback url.Values) (found []resource, answered bool) {
	if !slices.Contains(c.granted, resourceType) {
		c.lack(resourceType, NoScope)
		return nil, false
	}
	if limited, ok := errors.AsType[*emr.Error](c.failure); ctx.Err() != nil || ok && limited.Class() == emr.ClassRateLimited {
		c.lack(resourceType, Failed)
		return nil, false
	}
	entries, isCut, err := c.client.SearchChart(ctx, resourceType, c.about(params), maxRead)
	if refusal, ok := errors.AsType[*emr.Error](err); ok && fallback != nil && (refusal.Status == http.StatusBadRequest || refusal.Status == http.StatusUnprocessableEntity) {
		entries, isCut, err = c.client.SearchChart(ctx, resourceType, c.about(fallback), maxRead)
	}
	if err != nil {
		reason := reasonOf(err)
		c.lack(resourceType, reason)
		if reason == Failed {
			c.failure = err
		} else {
			c.read++
		}
		return nil, false
	}
	c.read++
	isForeign, isDamaged, seen := false, false, map[string]bool{}
	for _, raw := range entries {
		r, ok := parse(raw)
		switch {
		case ok && r.ResourceType != resourceType:
		case !ok || r.source() == "":
			isDamaged = true
		case !r.isAbout(c.emrID, c.client.BaseURL()):
			isForeign = true
		case !seen[r.ID]:
			seen[r.ID] = true
			found = append(found, r)
		}
	}
	for _, lack := range []struct {
		reason string
		holds  bool
	}{{Truncated, isCut}, {OtherPatient, isForeign}, {Unreadable, isDamaged}} {
		if lack.holds {
			c.lack(resourceType, lack.reason)
		}
	}
	return found, true
}

func (c *chart) about(params url.Values) url.Values {
	values := url.Values{}
	for name, value := range params {
		values[name] = value
	}
	if !values.Has("beneficiary") {
		values.Set("patient", c.emrID)
	}
	return values
}

func (c *chart) lack(resourceType, reason string) {
	c.content.Unavailable = append(c.content.Unavailable, Unavailable{resourceType, reason})
}

// reasonOf returns why a search gave nothing.
func reasonOf(err error) string {
	e, ours := errors.AsType[*emr.Error](err)
	switch {
	case !ours || e.Class() != emr.ClassRequest:
		if ours && e.Status == http.StatusNotImplemented {
			return NotSupported
		}
		return Failed
	case e.Status == http.StatusForbidden:
		return NoScope
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || slices.Contains(e.Issues, "not-supported"):
		return NotSupported
	}
	return Refused
}

// keep sorts by rank, then the newest first, and returns at most maxKept, or what an earlier read found where the EMR did not answer.
func keep[T any](c *chart, resourceType string, found, before []T, answered bool, rank func(T) int, date func(T) string) []T {
	if !answered && slices.Contains(c.content.Unavailable, Unavailable{resourceType, Failed}) {
		return before
	}
	slices.SortStableFunc(found, func(a, b T) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(date(b), date(a))) })
	if len(found) > maxKept {
		found = found[:maxKept]
		if cut := (Unavailable{resourceType, Truncated}); !slices.Contains(c.content.Unavailable, cut) {
			c.content.Unavailable = append(c.content.Unavailable, cut)
		}
	}
	return append([]T{}, found...)
}

// rankOf ranks a status: those in the list first, in any order.
func rankOf(status string, current ...string) int {
	if status == "" || slices.Contains(current, status) {
		return 0
	}
	return 1
}

func (c *chart) readConditions(ctx context.Context) {
	// Some EMRs search conditions only with a category.
	found, ok := c.search(ctx, "Condition", nil, url.Values{"category": {"problem-list-item"}})
	var list []Condition
	for _, r := range found {
		if !r.isRefuted() {
			list = append(list, r.condition())
		}
	}
	c.content.Conditions = keep(c, "Condition", list, c.before.Conditions, ok, func(v Condition) int {
		rank := 2 * rankOf(v.Status, "active", "recurrence", "relapse")
		if v.Category != "problem-list-item" {
			rank++
		}
		return rank
	}, func(v Condition) string { return cmp.Or(v.Date, v.Onset) })
}

func (c *chart) readMedications(ctx context.Context) {
	found, ok := c.search(ctx, "MedicationRequest", url.Values{"intent": {"order"}}, nil)
	named := map[string]concept{}
	var list []Medication
	for _, r := range found {
		if r.Intent != "" && r.Intent != "order" || r.DoNotPerform || slices.Contains([]string{"entered-in-error", "cancelled", "draft"}, r.Status) {
			continue
		}
		what := r.MedicationConcept
		if raw := r.contained(r.MedicationReference); raw != nil {
			inner, _ := parse(raw)
			what = inner.Code
		} else if ref := r.MedicationReference.Reference; what.text() == "" && r.MedicationReference.Display == "" {
			if _, known := named[ref]; !known && len(named) < maxReferences {
				named[ref] = c.readMedication(ctx, ref)
			}
			what = named[ref]
		}
		m := r.medication(what)
		if earlier := slices.IndexFunc(c.before.Medications, func(v Medication) bool { return v.Source == m.Source }); m.Text == "" && earlier >= 0 {
			m.Text, m.Code = c.before.Medications[earlier].Text, c.before.Medications[earlier].Code
		}
		list = append(list, m)
	}
	c.content.Medications = keep(c, "MedicationRequest", list, c.before.Medications, ok,
		func(v Medication) int { return rankOf(v.Status, "active", "on-hold") }, func(v Medication) string { return v.Date })
}

// readMedication reads the medication that a prescription refers to; zero if it cannot be read. After a failure no other is asked for.
func (c *chart) readMedication(ctx context.Context, ref string) concept {
	ref = strings.TrimPrefix(ref, c.client.BaseURL()+"/")
	id, isMedication := strings.CutPrefix(ref, "Medication/")
	if !isMedication || !emr.IsPatientID(id) || slices.ContainsFunc(c.content.Unavailable, func(u Unavailable) bool { return u.Resource == "Medication" }) {
		return concept{}
	}
	if !slices.Contains(c.granted, "Medication") {
		c.lack("Medication", NoScope)
		return concept{}
	}
	raw, err := c.client.ReadChart(ctx, ref)
	if err != nil {
		switch reason := reasonOf(err); reason {
		case Failed:
			c.failure = err
			c.lack("Medication", reason)
		case NoScope:
			c.lack("Medication", reason)
		}
		return concept{}
	}
	r, _ := parse(raw)
	return r.Code
}

func (c *chart) readEncounters(ctx context.Context) {
	from := c.now.AddDate(0, 0, -encounterDays).Format(time.DateOnly)
	found, ok := c.search(ctx, "Encounter", url.Values{"date": {"ge" + from}}, url.Values{})
	var list []Encounter
	for _, r := range found {
		v := r.encounter()
		// An EMR may ignore the date. An encounter without an end is kept unless it began before and is over.
		isOld := v.Start != "" && v.Start < from && (v.End != "" && v.End < from || v.End == "" && v.Status != "in-progress")
		if v.Status != "entered-in-error" && v.Status != "cancelled" && !isOld {
			list = append(list, v)
		}
	}
	c.content.Encounters = keep(c, "Encounter", list, c.before.Encounters, ok,
		func(v Encounter) int { return rankOf(v.Status, "in-progress", "onleave", "arrived", "triaged") }, func(v Encounter) string { return v.Start })
}

func (c *chart) readOrders(ctx context.Context) {
	for _, resourceType := range []string{"ServiceRequest", "DeviceRequest"} {
		found, ok := c.search(ctx, resourceType, nil, nil)
		var list, before []Order
		for _, r := range found {
			if !slices.Contains([]string{"entered-in-error", "draft", "revoked"}, r.Status) && !r.DoNotPerform {
				list = append(list, r.order())
			}
		}
		for _, o := range c.before.Orders {
			if strings.HasPrefix(o.Source, resourceType+"/") {
				before = append(before, o)
			}
		}
		c.content.Orders = append(c.content.Orders, keep(c, resourceType, list, before, ok,
			func(v Order) int { return rankOf(v.Status, "active", "on-hold") }, func(v Order) string { return v.Date })...)
	}
}

func (c *chart) readCoverage(ctx context.Context) {
	found, ok := c.search(ctx, "Coverage", nil, url.Values{"beneficiary": {"Patient/" + c.emrID}})
	var list []Coverage
	for _, r := range found {
		if r.Status != "entered-in-error" && r.Status != "draft" {
			list = append(list, r.coverage())
		}
	}
	c.content.Coverage = keep(c, "Coverage", list, c.before.Coverage, ok,
		func(v Coverage) int { return rankOf(v.Status, "active") }, func(v Coverage) string { return v.Start })
}

func (c *chart) readAllergies(ctx context.Context) {
	found, ok := c.search(ctx, "AllergyIntolerance", nil, nil)
	var list []Allergy
	for _, r := range found {
		if !r.isRefuted() {
			list = append(list, r.allergy())
		}
	}
	c.content.Allergies = keep(c, "AllergyIntolerance", list, c.before.Allergies, ok,
		func(v Allergy) int { return rankOf(v.Status, "active") }, func(v Allergy) string { return v.Date })
}
