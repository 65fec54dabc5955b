package billing

import (
	"github.com/vigilhealth/vigil/collections"
)

// standing is what the payments of an entry leave of the payers' decisions. A reopened claim has no adjustments left.
type standing struct {
	rows         []collections.Payment               // oldest first, without reversed ones and as they would have been without these
	paid         map[string]int64                    // by payer, less what was reversed
	byFile       map[string]int64                    // the part of it that came with 835s
	decided      map[string][]collections.Adjustment // by payer, of 835s, with the whole share of the patient
	shareOffsets []collections.Adjustment            // by which payments lessened the patient's share
	firstOffsets []collections.Adjustment            // of shareOffsets: by which the primary payer's payments did
	// firstDecided reports that a decision of the primary payer stands, primaryDenied that it is a denial, and secondDecided that the second payer's
	// decision on it stands.
	firstDecided, primaryDenied, secondDecided bool
}

func standingOf(charge int64, rows []collections.Payment) standing {
	rows, _ = replayStanding(charge, rows)
	return foldPayments(rows)
}

// foldPayments returns what payments leave, each of which stands.
func foldPayments(rows []collections.Payment) standing {
	s := standing{rows: rows, paid: map[string]int64{}, byFile: map[string]int64{}, decided: map[string][]collections.Adjustment{}}
	for _, p := range rows {
		switch p.Kind {
		case collections.ReopeningKind:
			s.reopen()
			continue
		case collections.RefundKind, collections.AdjustmentKind:
			continue
		}
		s.paid[p.Payer] += p.AmountCents
		if p.Payer == collections.PrimaryPayer && p.Kind != collections.ReversalKind {
			s.firstDecided = true
		}
		if p.Source != collections.Source835 {
			if p.Kind != collections.DenialKind {
				s.shareOffsets = mergeAdjustments(s.shareOffsets, negateAdjustments(p.Adjustments))
				if p.Payer == collections.PrimaryPayer && p.Kind == collections.PaymentKind {
					s.firstOffsets = mergeAdjustments(s.firstOffsets, negateAdjustments(p.Adjustments))
				}
			}
			continue
		}
		s.byFile[p.Payer] += p.AmountCents
		s.shareOffsets = mergeAdjustments(s.shareOffsets, p.ShareOffsets)
		s.decided[p.Payer] = mergeAdjustments(s.decided[p.Payer], mergeAdjustments(p.Adjustments, p.ShareOffsets))
		switch {
		case p.Kind == collections.ReversalKind && p.Payer == collections.SecondaryPayer:
			s.secondDecided = s.secondDecided && s.byFile[collections.SecondaryPayer] > 0
		case p.Kind == collections.ReversalKind && s.paid[collections.PrimaryPayer] <= 0:
			s.reopen()
		case p.Payer == collections.PrimaryPayer && p.Kind != collections.ReversalKind:
			s.primaryDenied = p.Kind == collections.DenialKind
		case p.Payer == collections.SecondaryPayer && p.Kind == collections.PaymentKind:
			s.secondDecided = s.firstDecided
		}
	}
	return s
}

// reopen records that the charge is undecided again.
func (s *standing) reopen() {
	s.decided, s.shareOffsets, s.firstOffsets = map[string][]collections.Adjustment{}, nil, nil
	s.firstDecided, s.primaryDenied, s.secondDecided = false, false, false
}
