package x12_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/x12"
)

// BenchmarkPayment reads an 835 of a thousand claims.
func BenchmarkPayment(b *testing.B) {
	file := newPayer().Write835(received(b, written(b, batchOf(1000))), nil)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x12.ReadResponses(file); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBatch writes an 837P of a thousand claims.
func BenchmarkBatch(b *testing.B) {
	batch := batchOf(1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := batch.Bytes(); err != nil {
			b.Fatal(err)
		}
	}
}
