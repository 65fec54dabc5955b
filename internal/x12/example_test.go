package x12_test

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/x12"
)

// Write a claim.
func ExampleBatch_Bytes() {
	batch := batchOf(1)
	batch.Claims[0].Lines = batch.Claims[0].Lines[:1]
	batch.Claims[0].Lines[0].Units = 0
	if _, err := batch.Bytes(); err != nil {
		fmt.Println(err)
	}
	batch.Claims[0].Lines[0].Units = 1
	file, err := batch.Bytes()
	fmt.Println(len(file) > 0, err)
	// Output:
	// x12: claim VC00000000: lines[0].units must be 1 to 9999
	// true <nil>
}

// Read a response: each claim has our own control number.
func ExampleReadResponses() {
	answers, err := x12.ReadResponses(wrapped("HP", "835", x12.Guide835,
		"BPR*I*43.02*C*CHK************20261120", "TRN*1*EFT9*1999999999", "N1*PR*MEDICARE", "N1*PE*LAKESIDE*XX*1234567893", "LX*1",
		"CLP*VC01*1*60*43.02**MB*ICN1", "SVC*HC:99454*60*43.02", "CAS*CO*45*16.98", "REF*6R*L1"), "VIGIL01")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, claim := range answers[0].Remittance.Claims {
		fmt.Println(claim.ControlNumber, claim.Status, int64(claim.Paid), claim.Lines[0].Adjustments)
	}
	_, err = x12.ReadResponses([]byte("ISA, but not really"))
	fmt.Println(err)
	// Output:
	// VC01 1 4302 [{CO 45 1698 }]
	// x12: segment 1, ISA: is shorter than 106 characters
}
