package console_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/vigilhealth/vigil/routes/console"
)

// What is packed is built into the program under its sum, whatever that begins with.
func TestSumsCanBeEmbedded(t *testing.T) {
	for i := range 1000 {
		if sum := console.Sum([]byte(strconv.Itoa(i))); !regexp.MustCompile(`^[0-9a-z]{16,}$`).MatchString(sum) {
			t.Fatalf("%q is no name that Go embeds", sum)
		}
	}
}
