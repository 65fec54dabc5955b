package e2e

import (
	"regexp"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

var phonesAddress = regexp.MustCompile(`phones +(http://\S+)`)

// Messages between staff, a patient's phone of the demo and the portal; see console_messages.mjs.
func TestConsoleMessages(t *testing.T) {
	browser, p := newConsole(t, 6)
	var address []string
	eventually(t, time.Minute, "the demo prints the address of the phones", func() bool {
		address = phonesAddress.FindStringSubmatch(p.Output())
		return address != nil
	})
	browser.run(t, p, "console_messages.mjs", object{"password": sandbox.Password, "phones": address[1]}, &map[string]any{})
}
