//go:build race

package billing_test

func init() { oracleCases = 120 } // the race detector needs no more; `make test` runs all of them without it
