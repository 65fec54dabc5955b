package routes

import (
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/routes/web"
)

type feeView struct {
	CPTCode       string         `json:"cpt_code"`
	Locality      string         `json:"locality"`
	EffectiveDate string         `json:"effective_date"`
	Year          int            `json:"year"`
	Status        string         `json:"status"`
	Shipped       bool           `json:"shipped"` // the national list with which the practice started
	Charge        *billing.Cents `json:"charge"`
	Expected      *billing.Cents `json:"expected"`
	Source        string         `json:"source"`
	UpdatedAt     *string        `json:"updated_at"`
}

func viewFee(f collections.Fee) feeView {
	year := billing.ParseDay(f.EffectiveDate).Year()
	return feeView{
		f.CPTCode, f.Locality, f.EffectiveDate, year, f.Status, f.Shipped, (*billing.Cents)(f.ChargeCents), (*billing.Cents)(f.ExpectedCents), f.Source,
		instantOf(f.UpdatedAt),
	}
}

func (a *api) listFees(c *web.Call) error {
	return web.RespondSliceOf(c, viewFee)(collections.ListFees(c.App))
}

func (a *api) importFees(c *web.Call) error {
	file, err := c.Body()
	if err != nil {
		return err
	}
	kind, params, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || kind != "text/csv" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fault.New(fault.UnsupportedMediaType, "unsupported_media_type", "The request body must be text/csv in UTF-8.")
	}
	if !utf8.Valid(file) {
		return fault.New(fault.Invalid, "parse_error", "The file is not UTF-8.")
	}
	q := c.Query()
	preview := q.Boolean("preview")
	if err := q.Err(); err != nil {
		return err
	}
	if preview != nil && *preview {
		done, err := billing.PreviewFees(c.App, file, c.Now.In(a.Zone))
		return c.Respond(done, err)
	}
	done, err := billing.ImportFees(c.App, file, c.Actor(), c.Now.In(a.Zone))
	return c.Respond(done, err)
}
