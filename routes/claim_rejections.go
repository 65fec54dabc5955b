package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/routes/web"
)

// rejectionView is why a clearinghouse or payer rejected a claim before adjudication.
type rejectionView struct {
	Source  string                `json:"source"`
	Codes   []string              `json:"codes"`
	At      *string               `json:"at"`
	Details []rejectionDetailView `json:"details"`
}

// rejectionDetailView is one statement of a 999 or 277CA about the line.
type rejectionDetailView struct {
	Text      string  `json:"text"`
	Claim     *string `json:"claim"`
	Line      *string `json:"line"`
	Procedure *string `json:"procedure"`
	Loop      *string `json:"loop"`
	Segment   *string `json:"segment"`
	Position  *int    `json:"position"`
	Element   *int    `json:"element"`
	Component *int    `json:"component"`
	Reference *string `json:"reference"`
	Value     *string `json:"value"`
	Category  *string `json:"category"`
	Code      *string `json:"code"`
	Entity    *string `json:"entity"`
	Message   *string `json:"message"`
}

func viewRejection(r *collections.Rejection) *rejectionView {
	positive := func(n int) *int {
		if n == 0 {
			return nil
		}
		return &n
	}
	return &rejectionView{r.Source, append([]string{}, r.Codes...), instantOf(r.At), web.Map(r.Details, func(d collections.RejectionDetail) rejectionDetailView {
		return rejectionDetailView{
			Text: clearinghouse.DescribeRejection(d), Claim: orNull(d.Claim), Line: orNull(d.Line), Procedure: orNull(d.Procedure), Loop: orNull(d.Loop),
			Segment: orNull(d.Segment), Position: positive(d.Position), Element: positive(d.Element), Component: positive(d.Component),
			Reference: orNull(d.Reference), Value: orNull(d.Value), Category: orNull(d.Category), Code: orNull(d.Code), Entity: orNull(d.Entity), Message: orNull(d.Message),
		}
	})}
}
