package gateway

import "testing"

func FuzzTelli(f *testing.F) { fuzzVendor(f, Telli) }
