package console_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/vigilhealth/vigil/routes/console"
)

// Go does not embed a file with a name that begins with an underscore, so no hash name may begin with one.
func TestHashNamesCanBeEmbedded(t *testing.T) {
	for i := range 1000 {
		if sum := console.HashName([]byte(strconv.Itoa(i))); !regexp.MustCompile(`^[0-9a-z]{16,}$`).MatchString(sum) {
			t.Fatalf("%q is not a name that Go embeds", sum)
		}
	}
}
