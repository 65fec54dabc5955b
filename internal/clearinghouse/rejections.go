package clearinghouse

import (
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/x12"
)

// rejection is why a line was rejected: the codes, and all that the file states about it.
type rejection struct {
	source  string
	codes   []string
	details []collections.RejectionDetail
}

// stored returns the rejection as it is stored.
func (r rejection) stored(now time.Time) collections.Rejection {
	return collections.Rejection{
		Source: r.source, Codes: distinctCodes(r.codes), At: collections.FormatInstant(now), Details: r.details[:min(len(r.details), maxRejectionDetails)],
	}
}

// maxRejectionDetails bounds what is kept of one answer: a file may repeat an error for each of a thousand claims.
const maxRejectionDetails = 60

// rejection999 returns what a 999 states about a line: errors in its claim and in none. If it names errors in other claims only, they are kept,
// because one of them rejected the file. Only errors in the claim have the values, which may be another patient's. Source: 005010X231A1, IK3, IK4 and CTX.
func rejection999(s x12.ImplementationAck, codes []string) func(collections.ClaimLine) rejection {
	return func(l collections.ClaimLine) rejection {
		own, others := []collections.RejectionDetail{}, []collections.RejectionDetail{}
		for _, set := range s.Sets {
			for _, e := range set.Errors {
				if e.Claim == "" || e.Claim == l.Claim {
					own = append(own, segmentDetails(e, e.Claim != "")...)
				} else {
					others = append(others, segmentDetails(e, false)...)
				}
			}
		}
		if len(own) == 0 {
			own = others
		}
		return rejection{"999", codes, own}
	}
}

// segmentDetails returns one detail for each wrong element of a segment, or one for the segment.
func segmentDetails(e x12.SegmentError, withValues bool) (list []collections.RejectionDetail) {
	segment := collections.RejectionDetail{Claim: e.Claim, Segment: e.Segment, Position: e.Position, Loop: e.Loop, Code: e.Code}
	for _, x := range e.Elements {
		d := segment
		d.Element, d.Component, d.Reference, d.Code = x.Position, x.Component, x.Reference, x.Code
		if withValues {
			d.Value = x.Value
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		list = append(list, segment)
	}
	return list
}

// statusDetails returns one detail for each code of 277CA statuses.
func statusDetails(line, procedure string, statuses []x12.StatusInfo) (list []collections.RejectionDetail) {
	for _, s := range statuses {
		for _, c := range s.Codes {
			list = append(list, collections.RejectionDetail{
				Line: line, Procedure: procedure, Category: c.Category, Code: c.Code, Entity: c.Entity, Message: s.Message,
			})
		}
	}
	return list
}

// rejection277CA returns what a 277CA states about a line of a claim: the statuses of the claim, what rejects its batch or provider, and the
// statuses of the line itself. If only other lines have a reason, those are kept, because they rejected the claim. Source: 005010X214, STC, SVC and
// REF FJ.
func rejection277CA(c x12.ClaimStatus, above []x12.StatusInfo) func(collections.ClaimLine) rejection {
	above = slices.DeleteFunc(above, func(s x12.StatusInfo) bool { return !s.Rejected() })
	shared := slices.Concat(c.Statuses, above)
	return func(l collections.ClaimLine) rejection {
		own := slices.DeleteFunc(slices.Clone(c.Lines), func(x x12.LineStatus) bool {
			return x.ControlNumber != "" && !strings.EqualFold(x.ControlNumber, l.Line)
		})
		if len(own) == 0 && !slices.ContainsFunc(shared, x12.StatusInfo.Rejected) {
			own = c.Lines
		}
		r := rejection{"277CA", codesOf(shared), statusDetails("", "", shared)}
		for _, x := range own {
			r.codes = append(r.codes, codesOf(x.Statuses)...)
			r.details = append(r.details, statusDetails(x.ControlNumber, x.Procedure, x.Statuses)...)
		}
		return r
	}
}

// ofBatch returns the same rejection for each line of a batch.
func ofBatch(source string, codes []string, details ...collections.RejectionDetail) func(collections.ClaimLine) rejection {
	return func(collections.ClaimLine) rejection { return rejection{source, codes, details} }
}
