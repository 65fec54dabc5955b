package payer

import (
	"strconv"

	"github.com/vigilhealth/vigil/internal/x12"
)

// A Fault is an error that a 999 reports about a claim's CLM segment.
type Fault struct {
	Claim   string // the submitter's control number
	Element int
	Code    string // such as 1 for missing, 7 for an invalid code
}

// Write999 returns a 999: accepted, or with faults the whole transaction set rejected.
func (p *Payer) Write999(s Submission, faults ...Fault) []byte {
	var out set
	out.add("AK1", "HC", s.Group, x12.Guide837P)
	out.add("AK2", "837", s.Set, x12.Guide837P)
	for _, fault := range faults {
		for _, c := range s.Claims {
			if c.ControlNumber == fault.Claim {
				out.add("IK3", "CLM", strconv.Itoa(c.ordinal-s.first+1), "2300", "8")
				out.add("CTX", "CLM01:"+c.ControlNumber)
				out.add("IK4", strconv.Itoa(fault.Element), "", fault.Code)
			}
		}
	}
	if len(faults) > 0 {
		out.add("IK5", "R", "5")
		out.add("AK9", "R", "1", "1", "0")
	} else {
		out.add("IK5", "A")
		out.add("AK9", "A", "1", "1", "1")
	}
	return p.file(s.Sender, "FA", "999", x12.Guide999, true, out)
}

// A Rejection is the status with which a 277CA rejects a claim.
type Rejection struct{ Category, Code, Entity string }

func (r Rejection) composite() string {
	if r.Entity == "" {
		return r.Category + ":" + r.Code
	}
	return r.Category + ":" + r.Code + ":" + r.Entity
}

// Write277CA returns a 277CA: every claim is accepted except those with a rejection. A rejection for "" rejects the whole
// batch.
func (p *Payer) Write277CA(s Submission, refusals map[string]Rejection) []byte {
	day := p.At.Format("20060102")
	var out set
	out.add("BHT", "0085", "08", "R"+s.Batch, day, p.At.Format("1504"), "TH")
	out.add("HL", "1", "", "20", "1")
	out.add("NM1", "PR", "2", p.Name, "", "", "", "", "PI", p.ID)
	out.add("TRN", "1", "T"+s.Batch)
	out.add("DTP", "050", "D8", day)
	out.add("DTP", "009", "D8", day)
	whole, sentBack := refusals[""]
	child := "1"
	if sentBack {
		child = "0"
	}
	out.add("HL", "2", "1", "21", child)
	out.add("NM1", "41", "2", s.Submitter.Name, "", "", "", "", "46", s.Submitter.ID)
	out.add("TRN", "2", s.Batch)
	var accepted []Claim
	if sentBack {
		out.add("STC", whole.composite(), day, "U", dollars(total(s.Claims)))
	} else {
		accepted = acceptedClaims(s.Claims, refusals)
		out.add("STC", "A1:19:PR", day, "WQ", dollars(total(s.Claims)))
	}
	out.addSums("90", "AA", s.Claims, accepted)
	if !sentBack {
		out.addProviders(s, refusals, day)
	}
	return p.file(s.Sender, "HN", "277", x12.Guide277CA, true, out)
}

func (out *set) addProviders(s Submission, refusals map[string]Rejection, day string) {
	level := 2
	var order []x12.Party
	claims := map[x12.Party][]Claim{}
	for _, c := range s.Claims {
		if claims[c.Billing] == nil {
			order = append(order, c.Billing)
		}
		claims[c.Billing] = append(claims[c.Billing], c)
	}
	for _, billing := range order {
		level++
		parent := strconv.Itoa(level)
		out.add("HL", parent, "2", "19", "1")
		out.add("NM1", "85", "2", billing.Name, "", "", "", "", "XX", billing.ID)
		out.add("TRN", "1", "0")
		out.add("STC", "A1:19:PR", "", "WQ", dollars(total(claims[billing])))
		out.addSums("QA", "QC", claims[billing], acceptedClaims(claims[billing], refusals))
		for _, c := range claims[billing] {
			level++
			out.add("HL", strconv.Itoa(level), parent, "PT")
			out.add("NM1", "QC", "1", c.Patient[0], c.Patient[1], "", "", "", "MI", c.Member)
			out.add("TRN", "2", c.ControlNumber)
			if r, found := refusals[c.ControlNumber]; found {
				out.add("STC", r.composite(), day, "U", dollars(c.Charge))
			} else {
				out.add("STC", "A2:20:PR", day, "WQ", dollars(c.Charge))
				out.add("REF", "1K", c.Number())
			}
			from, through := c.days()
			out.add("DTP", "472", "RD8", from+"-"+through)
		}
	}
}

// addSums adds the numbers and amounts of accepted and rejected claims.
func (out *set) addSums(accepted, rejected string, all, some []Claim) {
	if len(some) > 0 {
		out.add("QTY", accepted, strconv.Itoa(len(some)))
	}
	if len(some) < len(all) {
		out.add("QTY", rejected, strconv.Itoa(len(all)-len(some)))
	}
	if len(some) > 0 {
		out.add("AMT", "YU", dollars(total(some)))
	}
	if len(some) < len(all) {
		out.add("AMT", "YY", dollars(total(all)-total(some)))
	}
}

func acceptedClaims(claims []Claim, refusals map[string]Rejection) (list []Claim) {
	for _, c := range claims {
		if _, found := refusals[c.ControlNumber]; !found {
			list = append(list, c)
		}
	}
	return list
}

func total(claims []Claim) (sum x12.Cents) {
	for _, c := range claims {
		sum += c.Charge
	}
	return sum
}

// days are the first and the last one of a claim's services.
func (c Claim) days() (from, through string) {
	for _, line := range c.Lines {
		if from == "" || line.From < from {
			from = line.From
		}
		through = max(through, line.Through)
	}
	return from, through
}
