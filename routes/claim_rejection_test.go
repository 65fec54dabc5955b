package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// details returns what a rejected entry shows of the file: the given members of each statement.
func (cc *claimsClinic) details(entry string, members ...string) (list []string) {
	cc.t.Helper()
	for _, d := range cc.entry(entry).at("rejection.details").([]any) {
		var values []string
		for _, m := range members {
			values = append(values, fmt.Sprint(d.(object)[m]))
		}
		list = append(list, strings.Join(values, " "))
	}
	return list
}

// What a 999 states is kept: the segment, its position and loop, and each wrong element with its value; of another claim in the file, without values.
func TestRejectionDetailsOf999(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	a1, b1 := entries[a+" 99457"], entries[b+" 99457"]
	_, file := h.send(a1, b1)
	ack := string(h.payer.Write999(file, payer.Fault{Claim: h.claimOf(a1, file), Element: 2, Code: "7"}))
	i := strings.Index(ack, "IK4*")
	ack = ack[:i] + "IK4*2*782*7*118.4~IK4*5:3**I6~" + ack[i+strings.Index(ack[i:], "~")+1:]
	ack = strings.Replace(ack, "*2300*8~", "*2010AA*8~", 1)
	h.upload([]byte(recounted(ack))).want(200)
	want := "[CLM 2010AA 2 <nil> 782 7 118.4 CLM 2010AA 5 3 <nil> I6 <nil>]"
	if got := fmt.Sprint(h.details(a1, "segment", "loop", "element", "component", "reference", "code", "value")); got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if got := h.details(a1, "text")[0]; got != "CLM02: the value is not in the code list." {
		t.Errorf("in words %q", got)
	}
	if got := fmt.Sprint(h.details(b1, "claim", "segment", "value")); strings.Contains(got, "118.4") || !strings.Contains(got, h.details(a1, "claim")[0]) {
		t.Errorf("the other claim keeps %s", got)
	}
	h.send(a1, b1)
	h.entry(a1).wantAt(object{"rejection": nil})
}

// A 277CA's entity, its words, and the line that it is about are kept; a status of one line is not another's.
func TestRejectionDetailsOf277CA(t *testing.T) {
	h := newClaimsClinic(t)
	entries := map[string]string{}
	id := h.insured("Ada", 40, nil)
	for key, entry := range h.reviewed() {
		entries[strings.TrimPrefix(key, id+" ")] = entry
	}
	_, file := h.send(entries["99457"], entries["99458"])
	claim := h.claimOf(entries["99457"], file)
	status := string(h.payer.Write277CA(file, map[string]payer.Rejection{claim: {Category: "A7", Code: "562", Entity: "85"}}))
	line := file.Claims[0].Lines[1]
	i := strings.Index(status, "STC*A7:562:85")
	i += strings.Index(status[i:], "~") + 1
	status = status[:i] + "SVC*HC:" + line.Procedure[1] + "*" + "38.49****1~STC*A7:453**U*38.49********MODIFIER MISSING~REF*FJ*" + line.ControlNumber + "~" + status[i:]
	h.upload([]byte(recounted(status))).want(200)
	got := map[string]string{}
	for code, entry := range entries {
		got[code] = fmt.Sprint(h.details(entry, "category", "code", "entity", "line", "procedure", "message"), h.entry(entry).at("rejection.codes"))
	}
	want := map[string]string{
		"99457": "[A7 562 85 <nil> <nil> <nil>] [A7:562]",
		"99458": "[A7 562 85 <nil> <nil> <nil> A7 453 <nil> " + line.ControlNumber + " 99458 MODIFIER MISSING] [A7:453 A7:562]",
	}
	if file.Claims[0].Lines[1].Procedure[1] == "99457" {
		t.Fatal("the lines are in another order")
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("kept\n%v, want\n%v", got, want)
	}
	if text := h.details(entries["99457"], "text")[0]; text != "Rejected for invalid information: National Provider Identifier (NPI), the billing provider." {
		t.Errorf("in words %q", text)
	}
}

// recounted corrects the number of segments in SE01.
func recounted(file string) string {
	segments := strings.Split(file, "~")
	first := 0
	for i, s := range segments {
		if strings.HasPrefix(s, "ST*") {
			first = i
		}
		if parts := strings.Split(s, "*"); parts[0] == "SE" {
			segments[i] = fmt.Sprintf("SE*%d*%s", i-first+1, parts[2])
		}
	}
	return strings.Join(segments, "~")
}

// A 999 without a claim names it by the position of the segment in the file that was sent; another claim's value is not shown.
func TestRejection999WithoutClaim(t *testing.T) {
	for name, test := range map[string]struct{ wrong, segment, want, other string }{
		"a claim's amount":     {"IK3*CLM*%d*2300*8~IK4*2*782*7*47.87~", "CLM", "CLM CLAIM 47.87", "CLM CLAIM <nil>"},
		"without its value":    {"IK3*CLM*%d*2300*8~IK4*2*782*7~", "CLM", "CLM CLAIM 47.87", "CLM CLAIM <nil>"},
		"another value":        {"IK3*CLM*%d*2300*8~IK4*2*782*7*118.4~", "CLM", "CLM CLAIM <nil>", "CLM CLAIM <nil>"},
		"another segment":      {"IK3*SV1*%d*2400*8~IK4*2*782*7*47.87~", "CLM", "SV1 <nil> <nil>", "SV1 <nil> <nil>"},
		"a subscriber's level": {"IK3*SBR*%d*2000B*8~IK4*9*1032*7*CI~", "SBR", "SBR CLAIM CI", "SBR CLAIM <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newClaimsClinic(t)
			a, b := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
			entries := h.reviewed()
			batch, file := h.send(entries[a+" 99457"], entries[b+" 99457"])
			sent := map[string]string{}
			for _, entry := range entries {
				sent[entry] = h.claimOf(entry, file)
			}
			raw := h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/file/"), nil).want(200).body
			first, position, claim := 0, 0, ""
			for i, s := range strings.Split(strings.ReplaceAll(raw, "\n", ""), "~") {
				switch parts := strings.Split(s, "*"); parts[0] {
				case "ST":
					first = i
				case "CLM":
					claim = parts[1] // of the last one
				}
				if strings.HasPrefix(s, test.segment+"*") {
					position = i - first + 1
				}
			}
			ack := string(h.payer.Write999(file, payer.Fault{Claim: claim, Element: 2, Code: "7"}))
			from, to := strings.Index(ack, "IK3*"), strings.Index(ack, "IK5*")
			wrong := fmt.Sprintf(test.wrong, position)
			h.upload([]byte(recounted(ack[:from] + wrong + ack[to:]))).want(200)
			for _, entry := range entries {
				want := test.other
				if sent[entry] == claim {
					want = test.want
				}
				if want = strings.ReplaceAll(want, "CLAIM", claim); strings.Join(h.details(entry, "segment", "claim", "value"), "; ") != want {
					t.Errorf("kept %v, want %s", h.details(entry, "segment", "claim", "value"), want)
				}
			}
		})
	}
}

// A 277CA that refuses the only billing provider of a batch refuses its claims.
func TestProviderRefusedBy277CA(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	batch, file := h.send(entries[a+" 99457"], entries[b+" 99457"])
	status := string(h.payer.Write277CA(file, nil))
	provider := strings.Index(status, "*19*")
	from := strings.LastIndex(status[:provider], "HL*")
	end := strings.LastIndex(status, "SE*")
	status = status[:from] + "HL*3*2*19*0~NM1*85*2*ELM STREET MEDICINE*****XX*1234567893~TRN*1*0~STC*A3:562:85**U*95.74~QTY*QC*2~AMT*YY*95.74~" + status[end:]
	h.upload([]byte(recounted(status))).want(200).wantAt(object{"unmatched": 0.0})
	for _, entry := range entries {
		refused := h.entry(entry)
		if got := fmt.Sprint(refused.at("rejection.codes")); got != "[A3:562]" {
			t.Errorf("refused for %s", got)
		}
		refused.wantAt(object{"lifecycle_status": "reviewed", "rejection.source": "277CA"})
	}
	h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/"), nil).want(200).wantAt(object{"status": "rejected"})
}
