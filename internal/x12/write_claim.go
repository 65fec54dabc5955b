package x12

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// claimLoop writes loop 2300 with everything below it.
func (w *writer) claimLoop(c Claim) {
	w.claim = c.ControlNumber
	frequency := w.codeIn("frequency", c.Frequency, "1 7 8", "")
	w.add("CLM", w.codeMatching("control_number", c.ControlNumber, claimNumber), w.money("charge", c.Charge()), "", "",
		composite(w.codeMatching("place_of_service", c.PlaceOfService, twoDigits), "B", frequency), "Y", w.codeIn("assignment", c.Assignment, "A B C", "A"),
		w.codeIn("benefits", c.Benefits, "Y N W", "Y"), w.codeIn("release", c.Release, "Y I", "Y"))
	if c.PatientPaid != 0 {
		w.add("AMT", "F5", w.money("patient_paid", c.PatientPaid))
	}
	switch {
	case frequency != "1":
		w.add("REF", "F8", w.requiredText("payer_control_number", c.PayerControlNumber, 50))
	case c.PayerControlNumber != "":
		w.reject("payer_control_number", "belongs to a replacement or a void")
	}
	w.diagnoses(c.Diagnoses)
	if c.Referring != nil {
		w.namedPerson("DN", "referring", *c.Referring)
	}
	if c.Rendering != nil {
		w.provider("82", "rendering", *c.Rendering)
		if c.Rendering.Taxonomy != "" {
			w.add("PRV", "PE", "PXC", w.codeMatching("rendering.taxonomy", c.Rendering.Taxonomy, taxonomy))
		}
	}
	if c.Facility != nil {
		w.facility(*c.Facility)
	}
	w.otherPayers(c)
	w.serviceLines(c)
}

// namedPerson writes a provider who must be a person: who referred the patient, or ordered the service. Source: 005010X222A1, 2310A and 2420E.
func (w *writer) namedPerson(role, field string, p Provider) {
	w.requiredText(field+".first", p.First, 35)
	w.provider(role, field, p)
}

// facility writes loop 2310C. A facility has no first name, and may have no NPI.
func (w *writer) facility(p Provider) {
	elements := []string{"77", "2", w.requiredText("facility.name", p.Name, 60)}
	if p.NPI != "" {
		elements = append(elements, "", "", "", "", "XX", w.npi("facility.npi", p.NPI))
	}
	w.add("NM1", elements...)
	w.address("facility.address", p.Address, w.zip...)
}

// diagnoses writes HI: the principal diagnosis first, no duplicates, without periods. Source: 005010X222A1, HI.
func (w *writer) diagnoses(codes []string) {
	w.intInRange("diagnoses", len(codes), maxDiagnoses)
	var elements, seen []string
	for i, code := range codes {
		field := fmt.Sprintf("diagnoses[%d]", i)
		code = w.codeMatching(field, strings.ReplaceAll(code, ".", ""), diagnosis)
		if slices.Contains(seen, code) && code != "" {
			w.reject(field, "appears twice")
		}
		seen = append(seen, code)
		qualifier := "ABF"
		if i == 0 {
			qualifier = "ABK"
		}
		elements = append(elements, composite(qualifier, code))
	}
	w.add("HI", elements...)
}

// otherPayers writes loop 2320 for each further coverage. Source: 005010X222A1, front matter, "Coordination of Benefits".
func (w *writer) otherPayers(c Claim) {
	if len(c.OtherPayers) > maxOthers {
		w.reject("others", fmt.Sprintf("are more than %d", maxOthers))
	}
	seen := []string{cmp.Or(c.Coverage.Sequence, "P")}
	for i, o := range c.OtherPayers {
		field := fmt.Sprintf("others[%d]", i)
		if slices.Contains(seen, cmp.Or(o.Sequence, "P")) {
			w.reject(field+".sequence", "is also another payer's")
		}
		seen = append(seen, cmp.Or(o.Sequence, "P"))
		w.subscriberInfo(field, o.Coverage, w.codeIn(field+".relationship", o.Relationship, otherCodes, ""))
		w.adjustments(field, o.Adjustments)
		if o.DecidedOn != "" {
			w.add("AMT", "D", w.money(field+".paid", o.Paid))
		}
		w.add("OI", "", "", w.codeIn("benefits", c.Benefits, "Y N W", "Y"), "", "", w.codeIn("release", c.Release, "Y I", "Y"))
		if len(o.RemarkCodes) > 0 {
			w.remarks(field, o.RemarkCodes[:min(len(o.RemarkCodes), maxRemarks)])
		}
		w.person("IL", field+".subscriber", o.Subscriber, w.requiredText(field+".member_id", o.MemberID, 80))
		if o.Subscriber.Address != (Address{}) {
			w.address(field+".subscriber.address", o.Subscriber.Address, 5, 9)
		}
		w.payer(field+".payer", o.Payer)
		if o.DecidedOn != "" && !c.decidedByLine(o.Payer.ID) { // otherwise each line has the date
			w.add("DTP", "573", "D8", w.day(field+".decided_on", o.DecidedOn))
		}
		if o.ControlNumber != "" {
			w.add("REF", "F8", w.optionalText(field+".control_number", o.ControlNumber, 50))
		}
	}
}

// remarks writes MOA with the remark codes of another payer's decision.
func (w *writer) remarks(field string, codes []string) {
	elements := []string{"", ""}
	for i, code := range codes {
		elements = append(elements, w.codeMatching(fmt.Sprintf("%s.remark_codes[%d]", field, i), code, remarkCode))
	}
	w.add("MOA", elements...)
}

func (c Claim) decidedByLine(payer string) bool {
	return slices.ContainsFunc(c.Lines, func(line ServiceLine) bool {
		return slices.ContainsFunc(line.Decisions, func(d LineDecision) bool { return d.PayerID == payer })
	})
}

// adjustments writes CAS segments: one per group and six reasons, in their order. Source: 005010X222A1, CAS of 2320 and 2430.
func (w *writer) adjustments(field string, list []Adjustment) {
	var groups []string
	byGroup := map[string][]string{}
	for i, a := range list {
		at := fmt.Sprintf("%s.adjustments[%d]", field, i)
		group := w.codeIn(at+".group", a.Group, adjustGroups, "")
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		if a.Amount < -maxAmount || a.Amount > maxAmount {
			w.reject(at+".amount", "is too large")
		}
		units := ""
		if a.Quantity != "" {
			units = w.codeMatching(at+".quantity", a.Quantity, quantity)
		}
		byGroup[group] = append(byGroup[group], w.codeMatching(at+".code", a.Code, reasonCode), a.Amount.decimal(), units)
	}
	written := 0
	for _, group := range groups {
		for part := range slices.Chunk(byGroup[group], 3*perSegment) {
			w.add("CAS", append([]string{group}, part...)...)
			written++
		}
	}
	if written > maxAdjustments {
		w.reject(field+".adjustments", "are more than the guide has room for")
	}
}

// serviceLines writes loop 2400 for each service line.
func (w *writer) serviceLines(c Claim) {
	w.intInRange("lines", len(c.Lines), maxLines)
	seen := map[string]bool{}
	for i, line := range c.Lines {
		field := fmt.Sprintf("lines[%d]", i)
		w.add("LX", fmt.Sprint(i+1))
		code := w.procedure(field, line)
		place := ""
		if line.PlaceOfService != "" && line.PlaceOfService != c.PlaceOfService {
			place = w.codeMatching(field+".place_of_service", line.PlaceOfService, twoDigits)
		}
		w.add("SV1", code, w.money(field+".charge", line.Charge), "UN", w.intInRange(field+".units", line.Units, 9999), place, "",
			w.pointers(field, line, len(c.Diagnoses)))
		w.days(field, line)
		number := w.requiredText(field+".control_number", line.ControlNumber, 30)
		if seen[number] && number != "" {
			w.reject(field+".control_number", "is used by two lines of the claim")
		}
		seen[number] = true
		w.add("REF", "6R", number)
		if line.Ordering != nil {
			w.namedPerson("DK", field+".ordering", *line.Ordering)
		}
		w.decisions(field, c, line, code)
	}
}

func (w *writer) procedure(field string, line ServiceLine) string {
	parts := []string{"HC", w.codeMatching(field+".procedure", line.Procedure, procedure)}
	if len(line.Modifiers) > maxModifiers {
		w.reject(field+".modifiers", fmt.Sprintf("are more than %d", maxModifiers))
	}
	for i, m := range line.Modifiers {
		parts = append(parts, w.codeMatching(fmt.Sprintf("%s.modifiers[%d]", field, i), m, modifier))
	}
	return composite(parts...)
}

func (w *writer) pointers(field string, line ServiceLine, diagnoses int) string {
	w.intInRange(field+".pointers", len(line.Pointers), maxPointers)
	var parts []string
	for i, p := range line.Pointers {
		if slices.Contains(line.Pointers[:i], p) {
			w.reject(fmt.Sprintf("%s.pointers[%d]", field, i), "appears twice")
		}
		parts = append(parts, w.intInRange(fmt.Sprintf("%s.pointers[%d]", field, i), p, diagnoses))
	}
	return composite(parts...)
}

func (w *writer) days(field string, line ServiceLine) {
	from, through := w.day(field+".from", line.From), w.day(field+".through", line.Through)
	switch {
	case from == through:
		w.add("DTP", "472", "D8", from)
	case from > through && through != "":
		w.reject(field+".through", "is before the first day")
	default:
		w.add("DTP", "472", "RD8", from+"-"+through)
	}
}

// decisions writes loop 2430: another payer's decisions on the line.
func (w *writer) decisions(field string, c Claim, line ServiceLine, code string) {
	for i, d := range line.Decisions {
		at := fmt.Sprintf("%s.decisions[%d]", field, i)
		if !slices.ContainsFunc(c.OtherPayers, func(o OtherPayer) bool { return o.Payer.ID == d.PayerID }) {
			w.reject(at+".payer_id", "is none of the claim's other payers")
		}
		w.add("SVD", w.requiredText(at+".payer_id", d.PayerID, 80), w.money(at+".paid", d.Paid), code, "", w.intInRange(at+".units", d.Units, 9999))
		w.adjustments(at, d.Adjustments)
		w.add("DTP", "573", "D8", w.day(at+".decided_on", d.DecidedOn))
		w.add("AMT", "EAF", w.money(at+".remaining", d.Remaining))
	}
}
