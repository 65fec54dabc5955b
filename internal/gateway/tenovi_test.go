package gateway

import "testing"

func FuzzTenovi(f *testing.F) { fuzzVendor(f, Tenovi) }
