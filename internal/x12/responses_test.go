package x12_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/x12"
)

// wrapped puts segments into envelopes that are addressed to us.
func wrapped(functional, number, guide string, segments ...string) []byte {
	head := "ST*" + number + "*0001"
	if number != "835" {
		head += "*" + guide
	}
	body := strings.Join(append([]string{head}, segments...), "~\n")
	return []byte(fmt.Sprintf("ISA*00*          *00*          *ZZ*PAYER          *ZZ*VIGIL01        *261103*0930*^*00501*000000001*0*P*:~\n"+
		"GS*%s*PAYER*VIGIL01*20261103*0930*1*X*%s~\n%s~\nSE*%d*0001~\nGE*1*1~\nIEA*1*000000001~\n", functional, guide, body, len(segments)+2))
}

func answered(t testing.TB, file []byte) x12.Response {
	t.Helper()
	answers, err := x12.ReadResponses(file, "VIGIL01")
	if err != nil {
		t.Fatal(err)
	}
	return answers[0]
}

// A complete 999: one set accepted, one accepted with errors, one rejected.
func TestRead999(t *testing.T) {
	a := answered(t, wrapped("FA", "999", "005010X231",
		"AK1*HC*4711*005010X222A1",
		"AK2*837*0001*005010X222A1", "IK5*A",
		"AK2*837*0002*005010X222A1", "IK3*REF*15*2300*3", "CTX*SITUATIONAL TRIGGER*CLM*15*2300*5:3*1325", "IK5*E*5",
		"AK2*837*0003*005010X222A1",
		"IK3*NM1*22**8", "CTX*PATIENT NAME NM109:1EG4TE", "CTX*CLM01:VC01", "IK4*9:1:2*67*7*1EG4TE", "CTX*SITUATIONAL TRIGGER*NM1*22", "IK4*3*1035*1",
		"IK3*SV1*40*2400*8", "IK4*2*782*6*1.001", "IK5*R*5*I5",
		"AK9*P*3*3*2*1*26"))
	if a.Type != x12.TypeImplementationAck || a.Test || a.Receiver != "VIGIL01" || a.Sender != "PAYER" {
		t.Errorf("%+v", a)
	}
	got := *a.ImplementationAck
	want := x12.ImplementationAck{Group: "4711", Functional: "HC", Code: "P", Codes: []string{"1", "26"}, Received: 3, Accepted: 2}
	sets := got.Sets
	got.Sets = nil
	if !reflect.DeepEqual(got, want) || got.Rejected() {
		t.Errorf("%+v", got)
	}
	if len(sets) != 3 || sets[0].Rejected() || sets[1].Rejected() || !sets[2].Rejected() || sets[2].ControlNumber != "0003" || sets[0].Type != "837" {
		t.Errorf("%+v", sets)
	}
	if want := []x12.SegmentError{{Segment: "REF", Position: 15, Loop: "2300", Code: "3"}}; !reflect.DeepEqual(sets[1].Errors, want) {
		t.Errorf("%+v", sets[1])
	}
	if want := []x12.SegmentError{
		{Segment: "NM1", Position: 22, Code: "8", Claim: "VC01", Elements: []x12.ElementError{
			{Position: 9, Component: 1, Reference: "67", Code: "7", Value: "1EG4TE"}, {Position: 3, Reference: "1035", Code: "1"},
		}},
		{Segment: "SV1", Position: 40, Loop: "2400", Code: "8", Elements: []x12.ElementError{{Position: 2, Reference: "782", Code: "6", Value: "1.001"}}},
	}; !reflect.DeepEqual(sets[2].Errors, want) || !slices.Equal(sets[2].Codes, []string{"5", "I5"}) {
		t.Errorf("%+v", sets[2])
	}
	if refused := answered(t, wrapped("FA", "999", x12.Guide999, "AK1*HC*4711", "AK9*R*1*1*0*1")).ImplementationAck; !refused.Rejected() || len(refused.Sets) > 0 {
		t.Errorf("a rejected group: %+v", refused)
	}
}

// A complete 277CA.
func TestRead277CA(t *testing.T) {
	a := answered(t, wrapped("HN", "277", x12.Guide277CA,
		"BHT*0085*08*277X1*20261103*0930*TH",
		"HL*1**20*1", "NM1*AY*2*CLEARING HOUSE*****46*CLEARHOUSE", "TRN*1*CH1", "DTP*050*D8*20261102", "DTP*009*D8*20261103",
		"HL*2*1*21*1", "NM1*41*2*LAKESIDE*****46*VIGIL01", "TRN*2*000004711", "STC*A1:19:PR*20261103*WQ*300.5", "QTY*90*1", "AMT*YU*100",
		"HL*3*2*19*1", "NM1*85*2*LAKESIDE*****XX*1234567893", "TRN*1*0", "STC*A1:19**WQ*300.5", "REF*TJ*123456789", "QTY*QA*1", "AMT*YU*100",
		"HL*4*3*PT", "NM1*QC*1*DOE*KIM****MI*1EG4TE", "TRN*2*VC01", "STC*A2:20:PR*20261103*WQ*100", "REF*1K*ICN001", "REF*D9*CH77", "DTP*472*D8*20261001",
		"HL*5*3*PT", "NM1*QC*1*DOE*SAM****MI*1EG4TF",
		"TRN*2*VC02", "STC*A7:562:85*20261103*U*100.5******A7:116*A3:21:IL*FREE TEXT", "DTP*472*RD8*20261001-20261031",
		"TRN*2*VC03", "STC*A1:20*20261103*WQ*100", "DTP*472*D8*20261001",
		"SVC*HC:99454:95*43.02*****1", "STC*A7:454*20261103*U", "REF*FJ*L1", "DTP*472*D8*20261001", "SVC*HC:99457*48.5", "STC*A2:20"))
	if a.Type != x12.TypeClaimAck || len(a.ClaimAck.Sources) != 1 {
		t.Fatalf("%+v", a)
	}
	source := a.ClaimAck.Sources[0]
	if source.Source != (x12.Party{ID: "CLEARHOUSE", Name: "CLEARING HOUSE"}) || source.Trace != "CH1" || source.Batch != "000004711" || source.Rejected() {
		t.Errorf("%v %s %s", source.Source, source.Trace, source.Batch)
	}
	if want := (x12.StatusInfo{Codes: []x12.StatusCode{{Category: "A1", Code: "19", Entity: "PR"}}, Date: "2026-11-03", Action: "WQ", Charge: 30050}); !reflect.DeepEqual(source.Statuses, []x12.StatusInfo{want}) {
		t.Errorf("%+v", source.Statuses)
	}
	provider := source.Providers[0]
	if len(source.Providers) != 1 || provider.ID != "1234567893" || provider.Rejected() || len(provider.Statuses) != 1 || len(provider.Claims) != 3 {
		t.Fatalf("%d providers, %s, %d claims", len(source.Providers), provider.ID, len(provider.Claims))
	}
	for i, want := range []string{
		"VC01 ICN001 CH77 2026-10-01 2026-10-01 false 0", "VC02   2026-10-01 2026-10-31 true 0", "VC03   2026-10-01 2026-10-01 true 2",
	} {
		c := provider.Claims[i]
		if got := fmt.Sprint(c.ControlNumber, " ", c.PayerControlNumber, " ", c.ClearinghouseNumber, " ", c.From, " ", c.Through, " ", c.Rejected(), " ", len(c.Lines)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if want := []x12.StatusCode{{"A7", "562", "85"}, {"A7", "116", ""}, {"A3", "21", "IL"}}; !reflect.DeepEqual(provider.Claims[1].Statuses[0].Codes, want) {
		t.Errorf("%+v", provider.Claims[1].Statuses)
	}
	if line := provider.Claims[2].Lines[0]; line.ControlNumber != "L1" || line.Procedure != "99454" || line.Statuses[0].Codes[0].Code != "454" {
		t.Error("the line's status is not there")
	}
}

// Statuses that reject and statuses that do not.
func TestStatusRejection(t *testing.T) {
	for _, c := range []struct {
		category, action string
		refused          bool
	}{
		{"A0", "WQ", false},
		{"A1", "WQ", false},
		{"A2", "", false},
		{"A5", "WQ", false},
		{"A3", "U", true},
		{"A4", "", true},
		{"A6", "U", true},
		{"A7", "U", true},
		{"A8", "WQ", true},
		{"E0", "U", true},
		{"P1", "WQ", false},
	} {
		if got := (x12.StatusInfo{Codes: []x12.StatusCode{{Category: c.category}}, Action: c.action}).Rejected(); got != c.refused {
			t.Errorf("%s %s: %v", c.category, c.action, got)
		}
	}
	p := newPayer()
	s := received(t, written(t, batchOf(2)))
	whole := answered(t, p.Write277CA(s, map[string]payer.Rejection{"": {Category: "A8", Code: "496", Entity: "40"}})).ClaimAck.Sources[0]
	if !whole.Rejected() || len(whole.Providers) > 0 {
		t.Error("a batch that was sent back is not")
	}
}

var opening = []string{
	"BPR*I*120.5*C*ACH*CCP*01*021000021*DA*123456*1999999999**01*021000022*DA*98765*20261120", "TRN*1*EFT9*1999999999*SUPP", "CUR*PR*USD", "REF*EV*VIGIL01",
	"DTM*405*20261119", "N1*PR*AETNA*XV*60054", "N3*151 FARMINGTON AVE", "N4*HARTFORD*CT*06156", "REF*2U*OTHER", "PER*CX*HELP*TE*8005550100", "PER*BL*EDI*EM*edi@example.org",
	"N1*PE*LAKESIDE*XX*1234567893", "N3*1200 LAKE SHORE DR", "N4*CHICAGO*IL*60611", "REF*TJ*123456789", "RDM*BM",
	"LX*1", "TS3*1234567893*11*20261231*3*300", "TS2*1",
}

// A complete 835.
func TestRead835(t *testing.T) {
	a := answered(t, wrapped("HP", "835", x12.Guide835, append(slices.Clone(opening),
		"CLP*VC01*1*100*60.5*15*MB*ICN1*11*1",
		"CAS*CO*45*4.5*1*253*1", "NM1*QC*1*DOE*KIM****MI*1EG4TE", "NM1*74*1*DOE*KIMBERLY****C*1EG4TF", "MOA*.8*43.02*MA01*MA18**N782", "REF*1L*GRP", "DTM*232*20261001", "DTM*233*20261031",
		"DTM*050*20261102", "PER*CX**TE*8005550100", "AMT*AU*80", "QTY*CA*1",
		"SVC*HC:99454:95:25*60*44**1*HC:99445*2", "DTM*150*20261001", "DTM*151*20261030",
		"CAS*PR*1*5**2*6**3*1**66*1**85*1**187*1", "CAS*OA*23*1", "REF*6R*L1", "REF*LU*11", "AMT*B6*59", "LQ*HE*N782", "LQ*RX*70", "LQ*HE*M15",
		"SVC*HC:99457*40*22", "DTM*472*20261031", "CAS*CO*45*18", "REF*6R*L2",
		"CLP*VC02*22*-80*-40**MB*ICN2", "NM1*QC*1*DOE*SAM", "MIA*0****MA07***************M1*M2*M3*M4", "CAS*CO*45*-40",
		"LX*2",
		"CLP*VC02*4*80*0**MB*ICN3", "NM1*QC*1*DOE*SAM", "SVC*HC:99454*80*0**0", "DTM*472*20261001", "CAS*CO*50*80", "LQ*HE*N115",
		"PLB*1234567893*20261231*WO:OLD*-100.25*FB:NEXT*.25", "PLB*1234567893*20261231*L6*-0*CS:A*0*72:B*0*90*0*AP*0*WO:C*0")...))
	p := a.Remittance
	if a.Type != x12.TypeRemittance || p.Total != 12050 || p.Method != "ACH" || p.PaidOn != "2026-11-20" || p.Trace != "EFT9" || p.PayerNumber != "1999999999" ||
		p.Payer != (x12.Party{ID: "60054", Name: "AETNA"}) || p.Payee != (x12.Party{ID: "1234567893", Name: "LAKESIDE"}) || p.ProducedOn != "2026-11-19" {
		t.Errorf("%s %d %s %s %s %s %v %v %s", a.Type, p.Total, p.Method, p.PaidOn, p.Trace, p.PayerNumber, p.Payer, p.Payee, p.ProducedOn)
	}
	var got []string
	for _, c := range p.Claims {
		got = append(got, fmt.Sprint("CLP ", c.ControlNumber, c.Status, c.Charge, c.Paid, c.PatientResponsibility, c.FilingCode, c.PayerControlNumber, c.PlaceOfService, c.Frequency, c.From,
			c.Through, c.Adjustments, c.RemarkCodes, c.Denied(), c.IsReversal(), c.Segment()))
		for _, line := range c.Lines {
			got = append(got, fmt.Sprint("SVC ", line.ControlNumber, line.Procedure, line.Modifiers, line.SubmittedProcedure, line.Charge, line.Paid, line.Units, line.From, line.Through, line.Adjustments, line.RemarkCodes))
		}
	}
	got = append(got, fmt.Sprint(p.ProviderAdjustments[0], p.ProviderAdjustments[1], len(p.ProviderAdjustments)))
	want := []string{
		"CLP VC01 1 10000 6050 1500 MB ICN1 11 1 2026-10-01 2026-10-31 [{CO 45 450 1} {CO 253 100 }] [MA01 MA18 N782] false false 23",
		"SVC L1 99454 [95 25] 99445 6000 4400 1 2026-10-01 2026-10-30 [{PR 1 500 } {PR 2 600 } {PR 3 100 } {PR 66 100 } {PR 85 100 } {PR 187 100 } {OA 23 100 }] [N782 M15]",
		"SVC L2 99457 []  4000 2200 1 2026-10-31 2026-10-31 [{CO 45 1800 }] []",
		"CLP VC02 22 -8000 -4000 0 MB ICN2     [{CO 45 -4000 }] [MA07 M1 M2 M3 M4] false true 50",
		"CLP VC02 4 8000 0 0 MB ICN3     [] [] true false 55",
		"SVC  99454 []  8000 0 0 2026-10-01 2026-10-01 [{CO 50 8000 }] [N115]",
		"{1234567893 2026-12-31 WO OLD -10025 61} {1234567893 2026-12-31 FB NEXT 25 61} 8",
	}
	for i := range max(len(got), len(want)) {
		if g, w := flat(got, i), flat(want, i); g != w {
			t.Errorf("%d\n%s\nwant\n%s", i, g, w)
		}
	}
}

// flat removes the blanks that Sprint adds between some values only.
func flat(list []string, i int) string {
	if i >= len(list) {
		return ""
	}
	return strings.ReplaceAll(list[i], " ", "")
}

// An incorrect total is reported at its segment and element, and an unbalanced claim is left to the caller.
func TestImbalance(t *testing.T) {
	base := append(slices.Clone(opening), "CLP*VC01*1*100*60*40*MB*ICN1", "CAS*PR*1*10", "SVC*HC:99454*100*70", "CAS*CO*45*30", "PLB*1234567893*20261231*WO*-60.5")
	answered(t, wrapped("HP", "835", x12.Guide835, base...))
	for name, c := range map[string]struct {
		from, to          string
		segment           string
		ordinal, position int
	}{
		"the file": {"*WO*-60.5", "*WO*-60.49", "BPR", 4, 2},
		"total":    {"BPR*I*120.5*", "BPR*I*-120.5*", "BPR", 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, replaced(t, wrapped("HP", "835", x12.Guide835, base...), c.from, c.to), c.segment, c.ordinal, c.position)
		})
	}
	for from, to := range map[string]string{"CAS*CO*45*30": "CAS*CO*45*29.99", "CAS*PR*1*10": "CAS*PR*1*10.01", "*100*60*40*": "*100*60.01*40*"} {
		if p := answered(t, replaced(t, wrapped("HP", "835", x12.Guide835, base...), from, to)).Remittance; p.Claims[0].Balanced() {
			t.Errorf("%s is balanced", to)
		}
	}
	stated := append(slices.Clone(opening), "CLP*VC01*1*100*60*40*MB*ICN1", "CAS*PR*1*40", "SVC*HC:99454*100*60", "PLB*1234567893*20261231*WO*-60.5")
	if p := answered(t, wrapped("HP", "835", x12.Guide835, stated...)).Remittance; !p.Claims[0].Balanced() || !p.Claims[0].PaidAfterAdjustments() {
		t.Error("a payment stated after the claim's adjustment is not balanced")
	}
	owed := append(slices.Clone(opening), "CLP*VC01*1*100*60*40*MB*ICN1", "CAS*PR*1*40", "PLB*1234567893*20261231*WO*80")
	owed[0] = strings.Replace(owed[0], "120.5", "0", 1)
	if p := answered(t, wrapped("HP", "835", x12.Guide835, owed...)).Remittance; p.Net() != -2000 {
		t.Errorf("a debt of %d", p.Net())
	}
}

// A violation of a guide is reported at its segment and element.
func TestGuideFaults(t *testing.T) {
	payment := append(slices.Clone(opening), "CLP*VC01*1*120.5*120.5**MB*ICN1", "SVC*HC:99454*120.5*120.5", "DTM*472*20261001")
	syntax := []string{"AK1*HC*4711", "AK2*837*0001", "IK3*CLM*20*2300*8", "IK4*2**1", "IK5*R", "AK9*R*1*1*0"}
	status := []string{
		"BHT*0085*08*1*20261103*0930*TH", "HL*1**20*1", "NM1*PR*2*P", "TRN*1*1", "HL*2*1*21*1", "TRN*2*1", "STC*A1:19", "HL*3*2*19*1", "TRN*1*0", "HL*4*3*PT",
		"TRN*2*VC01", "STC*A2:20*20261103*WQ*1", "DTP*472*D8*20261001",
	}
	change := func(list []string, from string, to ...string) []string {
		at := slices.Index(list, from)
		if at < 0 {
			t.Fatalf("no %s", from)
		}
		return slices.Replace(slices.Clone(list), at, at+1, to...)
	}
	for name, c := range map[string]struct {
		number            string
		segments          []string
		segment           string
		ordinal, position int
	}{
		"835 without BPR":            {"835", change(payment, opening[0]), "BPR", 25, 0},
		"835 with two BPR":           {"835", change(payment, opening[1], opening[0]), "BPR", 5, 0},
		"835 without a payee":        {"835", change(payment, "N1*PE*LAKESIDE*XX*1234567893"), "RDM", 18, 0},
		"835 without payer":          {"835", opening[:5], "N1", 9, 0},
		"835 with another N1":        {"835", change(payment, "N1*PE*LAKESIDE*XX*1234567893", "N1*ST*LAKESIDE"), "N1", 15, 1},
		"835 with another handling":  {"835", change(payment, opening[0], strings.Replace(opening[0], "BPR*I*", "BPR*Z*", 1)), "BPR", 4, 1},
		"835 with PLB's reason":      {"835", append(slices.Clone(payment), "PLB*1*20261231*WO*1**2"), "PLB", 26, 5},
		"835 with PLB's amount":      {"835", append(slices.Clone(payment), "PLB*1*20261231*WO*1*WO"), "PLB", 26, 6},
		"835 with a claim after PLB": {"835", append(slices.Clone(payment), "PLB*1*20261231*WO*0", "CLP*VC02*1*0*0**MB*1"), "CLP", 27, 0},
		"835 with a service alone":   {"835", append(slices.Clone(opening), "SVC*HC:99454*1*1"), "SVC", 23, 0},
		"835 with a claim's segment": {"835", append(slices.Clone(opening), "CLM*1"), "CLM", 23, 0},

		"999 without AK9":          {"999", syntax[:5], "AK9", 9, 0},
		"999 without IK5":          {"999", change(syntax, "IK5*R"), "AK9", 8, 0},
		"999 with AK2 unfinished":  {"999", change(syntax, "IK5*R", "AK2*837*0002"), "AK2", 8, 0},
		"999 with AK2 first":       {"999", syntax[1:], "AK2", 4, 0},
		"999 with two AK1":         {"999", change(syntax, "AK2*837*0001", "AK1*HC*1"), "AK1", 5, 0},
		"999 with IK3 after IK5":   {"999", change(syntax, "IK5*R", "IK5*R", "IK3*CLM*1"), "IK3", 9, 0},
		"999 with IK5 twice":       {"999", change(syntax, "IK5*R", "IK5*R", "IK5*A"), "IK5", 9, 0},
		"999 with IK4 alone":       {"999", change(syntax, "IK3*CLM*20*2300*8"), "IK4", 6, 0},
		"999 with a verdict":       {"999", change(syntax, "IK5*R", "IK5*Q"), "IK5", 8, 1},
		"999 with a position":      {"999", change(syntax, "IK4*2**1", "IK4*x**1"), "IK4", 7, 1},
		"999 with a group's word":  {"999", change(syntax, "AK9*R*1*1*0", "AK9*Q*1*1*0"), "AK9", 9, 1},
		"999 with no group number": {"999", change(syntax, "AK1*HC*4711", "AK1*HC"), "AK1", 4, 2},

		"277 that answers an inquiry": {"277", change(status, status[0], "BHT*0010*08*1*20261103*0930*DG"), "BHT", 4, 1},
		"277 with another level":      {"277", change(status, "HL*4*3*PT", "HL*4*3*22*0"), "HL", 13, 3},
		"277 with a level too early":  {"277", change(status, "HL*2*1*21*1", "HL*2*1*19*1"), "HL", 8, 0},
		"277 with no status code":     {"277", change(status, "STC*A2:20*20261103*WQ*1", "STC*A2"), "STC", 15, 1},
		"277 with another action":     {"277", change(status, "STC*A2:20*20261103*WQ*1", "STC*A2:20*20261103*XX"), "STC", 15, 3},
		"277 with a day":              {"277", change(status, "DTP*472*D8*20261001", "DTP*472*D8*2026"), "DTP", 16, 3},
		"277 with a range":            {"277", change(status, "DTP*472*D8*20261001", "DTP*472*RD8*20261002-20261001"), "DTP", 16, 3},
		"277 with a claim unspoken":   {"277", change(status, "STC*A2:20*20261103*WQ*1"), "TRN", 14, 0},
		"277 of nothing":              {"277", status[:1], "HL", 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			guide := map[string][2]string{"835": {"HP", x12.Guide835}, "999": {"FA", x12.Guide999}, "277": {"HN", x12.Guide277CA}}[c.number]
			wantFault(t, wrapped(guide[0], c.number, guide[1], c.segments...), c.segment, c.ordinal, c.position)
		})
	}
	wantFault(t, replaced(t, wrapped("HN", "277", x12.Guide277CA, status...), "ST*277*0001*005010X214", "ST*277*0001*005010X212"), "ST", 3, 3)
	wantFault(t, written(t, batchOf(1)), "ISA", 1, 8)
}

// A claim that cannot be read is kept with the place of the fault, and the claims around it are read.
func TestUnreadableClaim(t *testing.T) {
	claim := []string{"CLP*VC02*1*50*20**MB*ICN2", "NM1*QC*1*DOE*KIM", "SVC*HC:99457*50*20**1", "DTM*472*20261031", "CAS*CO*45*30", "REF*6R*L2"}
	for name, c := range map[string]struct {
		from, to, segment string
		ordinal, position int
		paid              x12.Cents
	}{
		"a status":           {"CLP*VC02*1*", "CLP*VC02*5*", "CLP", 25, 2, 2000},
		"a long status":      {"CLP*VC02*1*", "CLP*VC02*99*", "CLP", 25, 2, 2000},
		"no control number":  {"CLP*VC02*1*", "CLP**1*", "CLP", 25, 1, 2000},
		"a long number":      {"CLP*VC02*1*", "CLP*" + strings.Repeat("9", 39) + "*1*", "CLP", 25, 1, 2000},
		"a charge":           {"*50*20**MB", "*1.234*20**MB", "CLP", 25, 3, 2000},
		"a payment":          {"*50*20**MB", "*50*2O**MB", "CLP", 25, 4, 0},
		"a group":            {"CAS*CO*45*30", "CAS*XX*45*30", "CAS", 29, 1, 2000},
		"three decimals":     {"CAS*CO*45*30", "CAS*CO*45*30.001", "CAS", 29, 3, 2000},
		"a quantity":         {"CAS*CO*45*30", "CAS*CO*45*30*many", "CAS", 29, 4, 2000},
		"a reason alone":     {"CAS*CO*45*30", "CAS*CO*45*30**2", "CAS", 29, 6, 2000},
		"an amount alone":    {"CAS*CO*45*30", "CAS*CO*45*30***2", "CAS", 29, 5, 2000},
		"a day":              {"DTM*472*20261031", "DTM*472*20261331", "DTM", 28, 2, 2000},
		"a service":          {"SVC*HC:99457*50*20**1", "SVC*HC:99457**20**1", "SVC", 27, 2, 2000},
		"a name":             {"NM1*QC*1", "NM1**1", "NM1", 26, 1, 2000},
		"another name":       {"CLP*VC02", "CPL*VC02", "CPL", 25, 0, 2000},
		"a bare CLP":         {"CLP*VC02*1*50*20**MB*ICN2", "CLP", "CLP", 25, 1, 0},
		"an unknown segment": {"NM1*QC*1", "ZZZ*QC*1", "ZZZ", 26, 0, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Split(strings.Replace(strings.Join(claim, "~"), c.from, c.to, 1), "~")
			list := append(append(slices.Clone(opening), "CLP*VC01*1*60*60**MB*ICN1", "SVC*HC:99454*60*60**1"), bad...)
			p := answered(t, wrapped("HP", "835", x12.Guide835, append(list, "LX*2", "CLP*VC03*1*40.5*40.5**MB*ICN3", "SVC*HC:99454*40.5*40.5**1", "PLB*1*20261231*WO*0")...)).Remittance
			if len(p.Claims) != 3 || p.Claims[0].ParseError != nil || p.Claims[2].ParseError != nil || !p.Claims[2].Balanced() || p.Claims[2].ControlNumber != "VC03" || len(p.ProviderAdjustments) != 1 {
				t.Fatalf("read %d claims", len(p.Claims))
			}
			got := p.Claims[1]
			if got.ParseError == nil || got.ParseError.Segment != c.segment || got.ParseError.Ordinal != c.ordinal || got.ParseError.Position != c.position || got.Paid != c.paid || got.Balanced() {
				t.Errorf("%+v, paid %d", got.ParseError, got.Paid)
			}
		})
	}
}

// A payment that the payer sends, and one that it does not, differ by BPR01 and BPR03.
func TestMovesMoney(t *testing.T) {
	claim := []string{"CLP*VC01*1*120.5*120.5**MB*ICN1", "SVC*HC:99454*120.5*120.5"}
	for start, want := range map[string]bool{
		"BPR*I*120.5*C*": true, "BPR*C*120.5*C*": true, "BPR*D*120.5*C*": true, "BPR*U*120.5*C*": true, "BPR*X*120.5*C*": true, "BPR*I*120.5**": true,
		"BPR*I*120.5*D*": false, "BPR*P*120.5*C*": false, "BPR*H*120.5*C*": false,
	} {
		list := append(slices.Clone(opening), claim...)
		list[0] = strings.Replace(list[0], "BPR*I*120.5*C*", start, 1)
		if p := answered(t, wrapped("HP", "835", x12.Guide835, list...)).Remittance; p.MovesMoney() != want || !strings.HasPrefix(list[0], start) {
			t.Errorf("%s moves money: %t", list[0], p.MovesMoney())
		}
	}
}

// A file of claims is not a response.
func TestClaimFileIsNoResponse(t *testing.T) {
	if _, err := x12.ReadResponses(written(t, batchOf(1))); err == nil || !strings.Contains(err.Error(), "x12: segment 3, ST01: is not a response to claims") {
		t.Errorf("%v", err)
	}
}
