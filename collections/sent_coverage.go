package collections

import "github.com/vigilhealth/vigil/internal/phi"

// EntrySentCoverage is the patient's insurance with which the claim was last sent. Sealed.
const EntrySentCoverage = "sent_coverage"

// KeepCoverage keeps the patient's insurance with a claim that is sent, while its first payer is the entry's.
func (e *BillingEntry) KeepCoverage(p *Patient) error {
	c, err := p.Coverage()
	if err != nil || c.Payer == 0 || NumberID(c.Payer) != e.PayerID() {
		return err
	}
	text, err := c.Plaintext()
	e.Set(EntrySentCoverage, text)
	return err
}

// CoverageOf returns the insurance for an entry: the patient's while its first payer is the entry's, else the one with which the claim was sent, with the
// patient's second payer if it had none; empty if that is unknown. Source: docs/decisions/claims.md, "Secondary claims".
func (e *BillingEntry) CoverageOf(p *Patient) (phi.Coverage, error) {
	present, err := p.Coverage()
	if err != nil || present.Payer == Number(e.PayerID()) {
		return present, err
	}
	sent, err := phi.ParseCoverage(e.GetString(EntrySentCoverage))
	if err != nil || sent == nil || sent.Payer != Number(e.PayerID()) {
		return phi.Coverage{Secondary: present.Secondary}, err
	}
	if sent.Secondary == nil {
		sent.Secondary = present.Secondary
	}
	return *sent, nil
}
