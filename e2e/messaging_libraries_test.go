package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The providers' own libraries verify what the service sends, and the service what they sign: Twilio's, and that of Standard Webhooks.
func TestMessagingWithProvidersLibraries(t *testing.T) {
	t.Parallel()
	packages := pythonPackages(t, "e2e/testdata/messaging/requirements.txt")
	program, err := filepath.Abs("e2e/testdata/messaging/provider.py")
	if err != nil {
		t.Fatal(err)
	}
	const public = "https://clinic.example"
	for form, secret := range map[string]string{"http": "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of at least 24 bytes")), "twilio": "token"} {
		t.Run(form, func(t *testing.T) {
			address := freeAddr(t)
			demo := launch(t, filepath.Join(t.TempDir(), "data"), append([]string{
				"VIGIL_MESSAGING=" + form, "VIGIL_MESSAGING_URL=http://" + address, "VIGIL_MESSAGING_SECRET=" + secret, "VIGIL_MESSAGING_ACCOUNT=AC1",
				"VIGIL_MESSAGING_FROM=+15185550100", "VIGIL_PUBLIC_URL=" + public,
			}, noRateLimits...), "demo", "--patients", "2", "--quiet")
			env := []string{"PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1", "PATH=" + os.Getenv("PATH")}
			out := runIn(t, t.TempDir(), env, "python3", "-u", program, demo.URL, form, secret, address[strings.LastIndex(address, ":")+1:], public, sandbox.Password)
			wantOutput(t, out, "the request is signed", "status 204", "text 200", "forged 401", "delivered True", "received 1", "stopped None")
		})
	}
}
