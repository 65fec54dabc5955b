package routes

import (
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/remembered"
	"github.com/vigilhealth/vigil/routes/web"
)

// triagePage is an answer of the list, and whom it names. It refuses to print.
type triagePage struct {
	patients []string
	answer   []byte
	missing  error // of a page that the list ends before
}

// Format shows nothing of the answer.
func (triagePage) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[page]") }

// LogValue shows nothing of the answer.
func (triagePage) LogValue() slog.Value { return slog.StringValue("[page]") }

// show answers once the trail says who was shown whom, however often the page was made.
func (p triagePage) show(c *web.Call) error {
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, "", p.patients...); err != nil {
		return err
	}
	if p.missing != nil {
		return p.missing
	}
	return c.OKEncoded(p.answer)
}

// triagePages remembers plain pages for as long as the list is what it was. Source: docs/decisions/triage.md, "Remembered pages".
type triagePages struct {
	*remembered.Pages[collections.ListVersion, triagePage]
}

// mostPages is in bytes; a page of twenty patients has a dozen thousand.
const mostPages = 4 << 20

func newTriagePages() triagePages {
	return triagePages{remembered.NewPages[collections.ListVersion, triagePage](mostPages)}
}

// keep remembers a page, unless a name on it could not be opened.
func (p triagePages) remember(key string, state collections.ListVersion, views []triageView, page triagePage) {
	unreadable := slices.ContainsFunc(views, func(v triageView) bool { return v.PatientName == collections.UnreadableText })
	if page.missing == nil && !unreadable {
		p.Remember(key, state, page, len(page.answer)+64*len(page.patients))
	}
}

// key is all that a page depends on but the state of the list: whose patients the caller may see, and what was asked, which links to other pages
// repeat. Roles are let in, or not, before.
func (q askedOfTriage) key(c *web.Call) string {
	return q.filter.CareTeamOf + " " + c.Request.URL.EscapedPath() + "?" + c.Request.URL.RawQuery
}
