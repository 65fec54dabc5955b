package billing

import (
	"regexp"

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
}

type payerAddressBody struct {
	Line1      validate.String `json:"line1"`
	Line2      validate.String `json:"line2"`
	City       validate.String `json:"city"`
	State      validate.String `json:"state"`
	PostalCode validate.String `json:"postal_code"`
}

// What a claim can carry. Source: ASC X12N 005010X222A1 (837P), 2010BB NM109, SBR09, N301, N401 to N403.
var (
	ediPattern    = regexp.MustCompile(`^[A-Za-z0-9 ._-]{2,80}$`)
	filingPattern = regexp.MustCompile(`^[A-Z0-9]{2}$`)
	statePattern  = regexp.MustCompile(`^[A-Z]{2}$`)
	postalPattern = regexp.MustCompile(`^[0-9]{5}(-?[0-9]{4})?$`)
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
