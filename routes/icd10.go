package routes

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/routes/web"
)

// maxCodes limits a lookup to the codes of one claim.
const maxCodes = 12

type codeView struct {
	Code        string   `json:"code"`
	Description string   `json:"description"`
	Billable    bool     `json:"billable"`
	Synonym     *string  `json:"synonym"`
	Synonyms    []string `json:"synonyms"`
}

// codePage is a page of codes and the code set it comes from.
type codePage struct {
	web.Page[codeView]
	Release string `json:"release"`
}

func viewCode(hit icd10.Hit) codeView {
	return codeView{hit.Code, hit.Description, hit.Billable, orNull(hit.Synonym), append([]string{}, hit.Synonyms...)}
}

// searchICD10 searches diagnosis codes by text, or looks codes up. Source: docs/decisions/billing.md, "ICD-10".
func (a *api) searchICD10(c *web.Call) error {
	q, p := c.Listing()
	words, codes, billable := q.Text("search", 100), q.Text("codes", 200), q.IsTrue("billable")
	list := strings.FieldsFunc(codes, func(r rune) bool { return r == ',' || r == ' ' })
	if len(list) > maxCodes {
		q.Reject("codes", "Ensure this field has no more than 12 items.")
	}
	if codes != "" && words != "" {
		q.Reject("codes", "Give either codes or search, not both.")
	}
	if err := q.Err(); err != nil {
		return err
	}
	var hits []icd10.Hit
	var total int
	var err error
	if codes != "" {
		hits, err = a.codes.FindAll(c.App, list)
		total = len(hits)
		hits = web.Cut(p, hits)
	} else {
		hits, total, err = a.codes.Search(c.App, icd10.Query{Words: words, BillableOnly: billable, Offset: p.Offset(), Limit: p.Size})
	}
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, p, total, web.Map(hits, viewCode))
	return c.Respond(codePage{page, icd10.Release}, err)
}
