package x12

import (
	"cmp"
	"fmt"
	"strings"
)

// Limits of the guide. Source: 005010X222A1, front matter (claims of a transaction set, recommended), and the repeats of loops 2300, 2320 and 2400,
// of HI and of CAS.
const (
	maxClaims      = 5000
	maxSubscribed  = 100
	maxOthers      = 10
	maxLines       = 50
	maxDiagnoses   = 12
	maxPointers    = 4
	maxModifiers   = 4
	maxAdjustments = 5 // CAS segments
	perSegment     = 6 // adjustments of one CAS segment
	maxRemarks     = 5 // of MOA
)

// Bytes encodes the batch as a file. Its error is of type [FieldErrors] and lists every value that the guide does not allow; there is no file then.
func (b Batch) Bytes() ([]byte, error) {
	w := &writer{zip: []int{9}}
	if b.FiveDigitZIP {
		w.zip = []int{9, 5}
	}
	w.envelope(b)
	w.header(b)
	w.claims(b)
	if len(w.errors) > 0 {
		return nil, w.errors
	}
	sender, receiver := basicText(b.Submitter.ID), basicText(b.Receiver.ID)
	day, clock := b.At.Format("20060102"), b.At.Format("1504")
	group := Group{
		Functional: "HC", Sender: sender, Receiver: receiver, Date: day, Time: clock, ControlNumber: fmt.Sprint(b.Group), Version: Guide837P,
		Sets: []Set{{ID: "837", ControlNumber: fmt.Sprintf("%04d", b.Set), Version: Guide837P, Segments: w.segments}},
	}
	return Interchange{
		Separators: standard, SenderQualifier: "ZZ", Sender: sender, ReceiverQualifier: "ZZ", Receiver: receiver,
		Date: day[2:], Time: clock, ControlNumber: fmt.Sprintf("%09d", b.Interchange), Usage: b.Usage, Groups: []Group{group},
	}.bytes(), nil
}

func basicText(value string) string { text, _ := toBasicSet(value); return text }

// writer writes the segments of an 837P in the guide's order.
type writer struct {
	fields
	segments []Segment
	levels   int   // number of HL segments
	zip      []int // allowed lengths of a provider's ZIP code
}

func (w *writer) add(id string, elements ...string) {
	data := strings.TrimRight(strings.Join(elements, string(standard.Element)), string(standard.Element))
	w.segments = append(w.segments, Segment{ID: id, data: data, Separators: standard})
}

func composite(parts ...string) string {
	return strings.TrimRight(strings.Join(parts, string(standard.Component)), string(standard.Component))
}

const maxNumber = 999_999_999

func (w *writer) envelope(b Batch) {
	w.codeIn("usage", b.Usage, "T P", "")
	w.intInRange("interchange", b.Interchange, maxNumber)
	w.intInRange("group", b.Group, maxNumber)
	w.intInRange("set", b.Set, maxNumber)
	w.intInRange("claims", len(b.Claims), maxClaims)
	w.party("submitter.id", b.Submitter.ID)
	w.party("receiver.id", b.Receiver.ID)
	if b.At.IsZero() {
		w.reject("at", "is missing")
	}
}

// party checks an identifier for ISA06 and GS02.
func (w *writer) party(field, id string) {
	if text := w.requiredText(field, id, 15); len(text) == 1 {
		w.reject(field, "has less than two characters")
	}
}

// header writes table 1: submitter and receiver. Source: 005010X222A1, BHT, 1000A, 1000B.
func (w *writer) header(b Batch) {
	reference := cmp.Or(b.Reference, fmt.Sprintf("%09d", b.Interchange))
	w.add("BHT", "0019", "00", w.optionalText("reference", reference, 30), b.At.Format("20060102"), b.At.Format("1504"), "CH")
	w.add("NM1", "41", "2", w.requiredText("submitter.name", b.Submitter.Name, 60), "", "", "", "", "46", basicText(b.Submitter.ID))
	w.add("PER", "IC", w.requiredText("submitter.contact", b.Submitter.Contact, 60), "TE", w.digitString("submitter.phone", b.Submitter.Phone, 10))
	w.add("NM1", "40", "2", w.requiredText("receiver.name", b.Receiver.Name, 60), "", "", "", "", "46", basicText(b.Receiver.ID))
}

// level starts an HL under a parent, 0 for none.
func (w *writer) level(parent int, code string, child bool) int {
	w.levels++
	up, has := "", "0"
	if parent > 0 {
		up = fmt.Sprint(parent)
	}
	if child {
		has = "1"
	}
	w.add("HL", fmt.Sprint(w.levels), up, code, has)
	return w.levels
}

// claims writes table 2: claims grouped by billing provider, subscriber and patient, each group at the position of its first claim.
func (w *writer) claims(b Batch) {
	numbers := map[string]bool{}
	for _, c := range b.Claims {
		if numbers[c.ControlNumber] {
			w.claim = c.ControlNumber
			w.reject("control_number", "is used by two claims")
		}
		numbers[c.ControlNumber] = true
	}
	for _, billed := range groupBy(b.Claims, func(c Claim) Provider { return c.Billing }) {
		w.claim = billed[0].ControlNumber
		up := w.level(0, "20", true)
		w.billing(billed[0].Billing)
		for _, covered := range groupBy(billed, func(c Claim) subscription { return c.subscription() }) {
			w.subscriber(up, covered)
		}
	}
}

// subscription is the data that claims of one subscriber level share.
type subscription struct {
	Coverage
	dependent bool
}

func (c Claim) subscription() subscription {
	return subscription{Coverage: c.Coverage, dependent: c.Patient != nil}
}

// groupBy groups claims by key, in the order of each group's first claim.
func groupBy[K comparable](claims []Claim, key func(Claim) K) (groups [][]Claim) {
	at := map[K]int{}
	for _, c := range claims {
		k := key(c)
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// billing writes loop 2010AA and the taxonomy of its level.
func (w *writer) billing(p Provider) {
	if p.Taxonomy != "" {
		w.add("PRV", "BI", "PXC", w.codeMatching("billing.taxonomy", p.Taxonomy, taxonomy))
	}
	w.provider("85", "billing", p)
	w.address("billing.address", p.Address, w.zip...)
	w.add("REF", "EI", w.digitString("billing.tax_id", p.TaxID, 9))
	if p.Phone != "" {
		w.add("PER", "IC", w.optionalText("billing.contact", cmp.Or(p.Contact, p.Name), 60), "TE", w.digitString("billing.phone", p.Phone, 10))
	}
}

func (w *writer) provider(role, field string, p Provider) {
	kind := "2"
	if p.First != "" {
		kind = "1"
	}
	w.add("NM1", role, kind, w.requiredText(field+".name", p.Name, 60), w.optionalText(field+".first", p.First, 35), w.optionalText(field+".middle", p.Middle, 25), "",
		w.optionalText(field+".suffix", p.Suffix, 10), "XX", w.npi(field+".npi", p.NPI))
}

func (w *writer) address(field string, a Address, zipLengths ...int) {
	w.add("N3", w.requiredText(field+".line1", a.Line1, 55), w.optionalText(field+".line2", a.Line2, 55))
	city := w.requiredText(field+".city", a.City, 30)
	if len(city) == 1 {
		w.reject(field+".city", "has less than two characters")
	}
	if a.Country == "" || a.Country == "US" {
		w.add("N4", city, w.codeIn(field+".state", a.State, states, ""), w.digitString(field+".zip", a.ZIP, zipLengths...))
		return
	}
	w.add("N4", city, w.foreignState(field, a), w.optionalText(field+".zip", a.ZIP, 15), w.codeMatching(field+".country", a.Country, twoLetters))
}

// foreignState returns N402 of a foreign address; only Canadian provinces have codes. Source: 005010X222A1, N4 of 2010BA and 2010CA.
func (w *writer) foreignState(field string, a Address) string {
	if a.Country != "CA" {
		return ""
	}
	return w.codeMatching(field+".state", a.State, twoLetters)
}

// person writes an NM1 with the member id, if there is one.
func (w *writer) person(role, field string, p Person, member string) {
	elements := []string{
		role, "1", w.requiredText(field+".last", p.Last, 60), w.requiredText(field+".first", p.First, 35), w.optionalText(field+".middle", p.Middle, 25), "",
		w.optionalText(field+".suffix", p.Suffix, 10),
	}
	if member != "" {
		elements = append(elements, "MI", member)
	}
	w.add("NM1", elements...)
}

// demographics writes the address, birth date and gender, which only the patient has. Source: 005010X222A1, 2010BA and 2010CA.
func (w *writer) demographics(field string, p Person) {
	w.address(field+".address", p.Address, 5, 9)
	w.add("DMG", "D8", w.day(field+".birth_date", p.BirthDate), w.codeIn(field+".gender", p.Gender, "F M U", ""))
}

func (w *writer) payer(field string, p Payer) {
	w.add("NM1", "PR", "2", w.requiredText(field+".name", p.Name, 60), "", "", "", "", "PI", w.requiredText(field+".id", p.ID, 80))
	if p.Address != (Address{}) {
		w.address(field+".address", p.Address, 5, 9)
	}
}

// subscriberInfo writes the SBR of a coverage.
func (w *writer) subscriberInfo(field string, c Coverage, relationship string) {
	kind := ""
	if c.InsuranceType != "" {
		kind = w.codeIn(field+".insurance_type", c.InsuranceType, insuranceTypes, "")
	}
	w.add("SBR", w.codeIn(field+".sequence", c.Sequence, sequenceCodes, "P"), relationship, w.optionalText(field+".group", c.Group, 50), "", kind, "", "", "",
		w.codeIn(field+".payer.filing_code", c.Payer.FilingCode, filingCodes, ""))
}

// subscriber writes loop 2000B and the loops below it, repeated if the number of claims requires it.
func (w *writer) subscriber(up int, claims []Claim) {
	w.claim = claims[0].ControlNumber
	coverage := claims[0].Coverage
	self := claims[0].Patient == nil
	relationship := ""
	if self {
		relationship = "18"
	}
	for start := 0; start < len(claims); start += maxSubscribed {
		some := claims[start:min(start+maxSubscribed, len(claims))]
		level := w.level(up, "22", !self)
		w.subscriberInfo("coverage", coverage, relationship)
		w.person("IL", "subscriber", coverage.Subscriber, w.requiredText("coverage.member_id", coverage.MemberID, 80))
		if self {
			w.demographics("subscriber", coverage.Subscriber)
		}
		w.payer("payer", coverage.Payer)
		if !self {
			w.patients(level, some)
			continue
		}
		for _, c := range some {
			w.claimLoop(c)
		}
	}
}

// patients writes loop 2000C for each dependent of a subscriber.
func (w *writer) patients(up int, claims []Claim) {
	type dependent struct {
		Person
		relationship string
	}
	for _, cared := range groupBy(claims, func(c Claim) dependent { return dependent{*c.Patient, c.Relationship} }) {
		w.claim = cared[0].ControlNumber
		w.level(up, "23", false)
		w.add("PAT", w.codeIn("relationship", cared[0].Relationship, patientCodes, ""))
		w.person("QC", "patient", *cared[0].Patient, "")
		w.demographics("patient", *cared[0].Patient)
		for _, c := range cared {
			w.claimLoop(c)
		}
	}
}
