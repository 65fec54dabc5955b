package billing

import (
	"github.com/vigilhealth/vigil/collections"
)

// paymentState is the state that an entry's payments leave: amounts and adjustments by payer. Reopening
// the claim clears the adjustments.
type paymentState struct {
	rows           []collections.Payment               // oldest first, without reversed payments, replayed as if those had never been posted
	paid           map[string]int64                    // by payer, less what was reversed
	byFile         map[string]int64                    // the part of it that came with 835s
	decided        map[string][]collections.Adjustment // by payer, of 835s, with the whole share of the patient
	shareOffsets   []collections.Adjustment            // reductions of the patient's share by payments
	primaryOffsets []collections.Adjustment            // the part of shareOffsets that the primary payer paid
	// primaryDecided reports that a decision of the primary payer stands, primaryDenied that it is a denial, and secondaryDecided that the second payer's
	// decision on it stands.
	primaryDecided, primaryDenied, secondaryDecided bool
}

func standingOf(charge int64, rows []collections.Payment) paymentState {
	rows, _ = replayStanding(charge, rows)
	return foldPayments(rows)
}

// foldPayments returns what payments leave, each of which stands.
func foldPayments(rows []collections.Payment) paymentState {
	s := paymentState{rows: rows, paid: map[string]int64{}, byFile: map[string]int64{}, decided: map[string][]collections.Adjustment{}}
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
			s.primaryDecided = true
		}
		if p.Source != collections.Source835 {
			if p.Kind != collections.DenialKind {
				s.shareOffsets = mergeAdjustments(s.shareOffsets, negateAdjustments(p.Adjustments))
				if p.Payer == collections.PrimaryPayer && p.Kind == collections.PaymentKind {
					s.primaryOffsets = mergeAdjustments(s.primaryOffsets, negateAdjustments(p.Adjustments))
				}
			}
			continue
		}
		s.byFile[p.Payer] += p.AmountCents
		s.shareOffsets = mergeAdjustments(s.shareOffsets, p.ShareOffsets)
		s.decided[p.Payer] = mergeAdjustments(s.decided[p.Payer], mergeAdjustments(p.Adjustments, p.ShareOffsets))
		switch {
		case p.Kind == collections.ReversalKind && p.Payer == collections.SecondaryPayer:
			s.secondaryDecided = s.secondaryDecided && s.byFile[collections.SecondaryPayer] > 0
		case p.Kind == collections.ReversalKind && s.paid[collections.PrimaryPayer] <= 0:
			s.reopen()
		case p.Payer == collections.PrimaryPayer && p.Kind != collections.ReversalKind:
			s.primaryDenied = p.Kind == collections.DenialKind
		case p.Payer == collections.SecondaryPayer && p.Kind == collections.PaymentKind:
			s.secondaryDecided = s.primaryDecided
		}
	}
	return s
}

// reopen records that the charge is undecided again.
func (s *paymentState) reopen() {
	s.decided, s.shareOffsets, s.primaryOffsets = map[string][]collections.Adjustment{}, nil, nil
	s.primaryDecided, s.primaryDenied, s.secondaryDecided = false, false, false
}
