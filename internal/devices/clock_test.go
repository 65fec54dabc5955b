package devices_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/devices"
)

func TestManufactureDate(t *testing.T) {
	for udi, want := range map[string]string{
		"(01)00844588003288(11)250105(17)300105(10)A1(21)X9": "2025-01-05",
		"(01)00844588003288(11)250200":                       "2025-02-28", // without a day
		"(01)00844588003288(17)300105":                       "",
		"(01)00844588003288(11)251305":                       "",
		"(01)00844588003288(11)250231":                       "",
		"":                                                   "",
	} {
		if got := devices.ManufactureDate(udi); got != want {
			t.Errorf("%s was made on %q, want %q", udi, got, want)
		}
	}
}
