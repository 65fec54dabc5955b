package billing

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// PayerBody is the request body to create or change a payer.
type PayerBody struct {
	Name            validate.String                  `json:"name"`
	PayerID         validate.String                  `json:"payer_id"`
	IsActive        validate.Boolean                 `json:"is_active"`
	EDIPayerID      validate.String                  `json:"edi_payer_id"`
	ClaimFilingCode validate.String                  `json:"claim_filing_code"`
	Address         validate.Field[payerAddressBody] `json:"address"`

	CorrectedClaims      validate.String                                      `json:"corrected_claims"`
	MinutesRule          validate.String                                      `json:"minutes_rule"`
	DeviceDays           validate.Integer                                     `json:"device_days"`
	FilingLimitDays      validate.Integer                                     `json:"filing_limit_days"`
	AppealLimitDays      validate.Integer                                     `json:"appeal_limit_days"`
	ReceiverIDs          validate.Field[[]validate.String]                    `json:"receiver_ids"`
	SendOrderingProvider validate.Boolean                                     `json:"send_ordering_provider"`
	Modifiers            validate.Field[[]validate.Field[payerModifiersBody]] `json:"modifiers"`
}

type payerModifiersBody struct {
	CPTCode   validate.String                   `json:"cpt_code"`
	Modifiers validate.Field[[]validate.String] `json:"modifiers"`
}

// Limits of a payer's lists. Source: ASC X12N 005010X222A1 (837P), ISA08 and SV101-3 to -6.
const (
	maxReceivers     = 20
	maxCodeModifiers = 4
	maxLimitDays     = 1825 // no payer takes a claim or appeal for longer than five years
)

type payerAddressBody struct {
	Line1      validate.String `json:"line1"`
	Line2      validate.String `json:"line2"`
	City       validate.String `json:"city"`
	State      validate.String `json:"state"`
	PostalCode validate.String `json:"postal_code"`
}

// What a claim can carry. Source: ASC X12N 005010X222A1 (837P), 2010BB NM109, SBR09, N301, N401 to N403.
var (
	ediPattern      = regexp.MustCompile(`^[A-Za-z0-9 ._-]{2,80}$`)
	receiverPattern = regexp.MustCompile(`^[A-Za-z0-9 ._-]{1,15}$`)
	modifierPattern = regexp.MustCompile(`^[A-Z0-9]{2}$`)
	filingPattern   = regexp.MustCompile(`^[A-Z0-9]{2}$`)
	statePattern    = regexp.MustCompile(`^[A-Z]{2}$`)
	postalPattern   = regexp.MustCompile(`^[0-9]{5}(-?[0-9]{4})?$`)
)

// Read validates the body of a new payer.
func (b PayerBody) Read(c *validate.Checks) collections.Payer {
	active := c.Boolean("is_active", b.IsActive, false)
	p := collections.Payer{
		Name: c.Text("name", b.Name, validate.Required(200)), Code: c.Text("payer_id", b.PayerID, validate.Required(50).Identifier()), Active: active == nil || *active,
	}
	b.readClaimFields(c, &p)
	return p
}

// Change validates a change of a payer; omitted members stay as they are.
func (b PayerBody) Change(c *validate.Checks, p collections.Payer) collections.Payer {
	if b.Name.Sent() {
		p.Name = c.Text("name", b.Name, validate.Required(200))
	}
	if b.PayerID.Sent() {
		p.Code = c.Text("payer_id", b.PayerID, validate.Required(50).Identifier())
	}
	if active := c.Boolean("is_active", b.IsActive, false); active != nil {
		p.Active = *active
	}
	b.readClaimFields(c, &p)
	return p
}

// readClaimFields validates the fields that claims to the payer need.
func (b PayerBody) readClaimFields(c *validate.Checks, p *collections.Payer) {
	if b.EDIPayerID.Sent() {
		p.EDI = c.Text("edi_payer_id", b.EDIPayerID, validate.Optional(0).Identifier().Matching(ediPattern, "Must be 2 to 80 letters and digits."))
	}
	if b.ClaimFilingCode.Sent() {
		p.Filing = c.Text("claim_filing_code", b.ClaimFilingCode,
			validate.Optional(0).Identifier().Matching(filingPattern, "Must be two capital letters or digits, such as MB."))
	}
	b.readRules(c, p)
	if !b.Address.Sent() {
		return
	}
	p.Address = collections.PayerAddress{}
	a, ok := validate.Nested(c, "address", b.Address, "Expected an object.")
	if !ok {
		return
	}
	p.Address = collections.PayerAddress{
		Line1: c.Text("address.line1", a.Line1, validate.Required(55)), Line2: c.Text("address.line2", a.Line2, validate.Optional(55)),
		City:       c.Text("address.city", a.City, validate.Required(30)),
		State:      c.Text("address.state", a.State, validate.Required(2).Matching(statePattern, "Must be two capital letters.")),
		PostalCode: c.Text("address.postal_code", a.PostalCode, validate.Required(10).Matching(postalPattern, "Must be a ZIP code: 12345 or 12345-6789.")),
	}
}

// readRules validates what differs between payers.
func (b PayerBody) readRules(c *validate.Checks, p *collections.Payer) {
	if b.CorrectedClaims.Sent() {
		p.CorrectedClaims = c.Text("corrected_claims", b.CorrectedClaims, validate.Optional(0).OneOf(collections.CorrectedByReplacement, collections.CorrectedByNewClaim))
	}
	if b.MinutesRule.Sent() {
		p.MinutesRule = c.Text("minutes_rule", b.MinutesRule, validate.Optional(0).OneOf(InteractiveOnly, WithCareManagement))
	}
	if b.DeviceDays.Sent() {
		p.DeviceDays = 0
		if days := c.Integer("device_days", b.DeviceDays, false); days != nil {
			p.DeviceDays = int(*days)
			if *days != 2 && *days != 16 { // of 99445 and 99454
				c.Reject("device_days", "Must be 2, 16 or null.")
			}
		}
	}
	if b.FilingLimitDays.Sent() {
		p.FilingLimitDays = readLimitDays(c, "filing_limit_days", b.FilingLimitDays)
	}
	if b.AppealLimitDays.Sent() {
		p.AppealLimitDays = readLimitDays(c, "appeal_limit_days", b.AppealLimitDays)
	}
	if send := c.Boolean("send_ordering_provider", b.SendOrderingProvider, false); b.SendOrderingProvider.Sent() {
		p.SendOrderingProvider = send != nil && *send
	}
	if b.ReceiverIDs.Sent() {
		p.ReceiverIDs = nil
		rule := validate.Required(15).Identifier().Matching(receiverPattern, "Must be 1 to 15 letters and digits.")
		for _, id := range validate.Texts(c, "receiver_ids", b.ReceiverIDs, maxReceivers, "Expected a list of texts.", rule) {
			p.ReceiverIDs = append(p.ReceiverIDs, id)
		}
	}
	if b.Modifiers.Sent() {
		p.Modifiers = readModifiers(c, b.Modifiers)
	}
}

// readLimitDays validates how long a payer takes claims or appeals; 0 for null.
func readLimitDays(c *validate.Checks, name string, field validate.Integer) int {
	days := c.Integer(name, field, false)
	switch {
	case days == nil:
		return 0
	case *days < 1 || *days > maxLimitDays:
		c.Reject(name, fmt.Sprintf("Must be 1 to %d days, or null.", maxLimitDays))
		return 0
	}
	return int(*days)
}

// readModifiers validates the modifiers of codes, one row for each code.
func readModifiers(c *validate.Checks, list validate.Field[[]validate.Field[payerModifiersBody]]) (found collections.PayerModifiers) {
	for name, item := range validate.Items(c, "modifiers", list, len(rules), "Expected a list of objects.") {
		validate.NotNull(c, name, item)
		row, ok := validate.Nested(c, name, item, "Expected an object.")
		if !ok {
			continue
		}
		validate.NotNull(c, name+".modifiers", row.Modifiers)
		m := collections.CodeModifiers{CPTCode: c.Text(name+".cpt_code", row.CPTCode, validate.Required(0).OneOf((&Engine{Settings{Enable2026Codes: true}}).Codes()...)), Modifiers: []string{}}
		if slices.ContainsFunc(found, func(x collections.CodeModifiers) bool { return x.CPTCode == m.CPTCode }) {
			c.Reject(name+".cpt_code", "Appears twice.")
		}
		rule := validate.Required(2).Matching(modifierPattern, "Must be two capital letters or digits.")
		for _, modifier := range validate.Texts(c, name+".modifiers", row.Modifiers, maxCodeModifiers, "Expected a list of texts.", rule) {
			if slices.Contains(m.Modifiers, modifier) {
				c.Reject(name+".modifiers", "A modifier appears twice.")
			}
			m.Modifiers = append(m.Modifiers, modifier)
		}
		found = append(found, m)
	}
	return found
}
