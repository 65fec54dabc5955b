package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// The worked example of docs/decisions/gateway.md, "Webhook signature failure".
const (
	vectorSecret    = "whsec_test_2f6d0c"
	vectorBody      = `{"event_type":"measurement.created","device_id":"DEV-1001","patient_id":"GW-77","measurement_type":"blood_pressure","values":{"systolic":128,"diastolic":82,"pulse":71,"irregular_heartbeat":false},"unit":"mmHg","timestamp":"2026-01-15T13:45:00Z","device_model":"BP-7","battery_level":84,"signal_strength":-71,"hub_id":"HUB-9"}`
	vectorSignature = "sha256=ca23591018362625b0a40d1afa029c5fffedc06f2f5f2bc8eaeda30d62c77438"
)

var now = time.Date(2026, 1, 15, 13, 46, 0, 0, time.UTC)

// delivery returns the header of a delivery sent at the given time.
func delivery(signature string, at time.Time) http.Header {
	header := http.Header{}
	header.Set(SignatureHeader, signature)
	header.Set(TimestampHeader, strconv.FormatInt(at.Unix(), 10))
	return header
}

// wantFault returns the code of a fault of the given kind, "" for no error.
func wantFault(t testing.TB, err error, kind fault.Kind) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != kind {
		t.Fatalf("got %v, want a fault of kind %d", err, kind)
	}
	return f.Code
}

func TestVector(t *testing.T) {
	if len(vectorBody) != 325 {
		t.Fatalf("the body has %d bytes", len(vectorBody))
	}
	if got := Sign(vectorSecret, []byte(vectorBody)); got != vectorSignature {
		t.Errorf("signed %s", got)
	}
}

func TestVerifySignature(t *testing.T) {
	digits := strings.TrimPrefix(vectorSignature, "sha256=")
	other := Sign("other", []byte(vectorBody))
	both := Secrets{Current: "fresh", Previous: vectorSecret}
	for _, tc := range []struct {
		name      string
		secrets   Secrets
		signature string
		want      SecretName // "" for invalid_signature
	}{
		{"current", Secrets{Current: vectorSecret}, vectorSignature, CurrentSecret},
		{"previous", both, vectorSignature, PreviousSecret},
		{"current while changing", both, Sign("fresh", []byte(vectorBody)), CurrentSecret},
		{"previous alone", Secrets{Previous: vectorSecret}, vectorSignature, PreviousSecret},
		{"same secret twice", Secrets{vectorSecret, vectorSecret}, vectorSignature, CurrentSecret},
		{"upper-case hex", Secrets{Current: vectorSecret}, "sha256=" + strings.ToUpper(digits), CurrentSecret},
		{"second by comma", Secrets{Current: vectorSecret}, other + "," + vectorSignature, CurrentSecret},
		{"second by space", Secrets{Current: vectorSecret}, other + " " + vectorSignature, CurrentSecret},
		{"first by comma and space", Secrets{Current: vectorSecret}, vectorSignature + ", " + other, CurrentSecret},
		{"after rubbish", Secrets{Current: vectorSecret}, "v1,sha256=zz, " + vectorSignature, CurrentSecret},
		{"both secrets signed", both, vectorSignature + "," + Sign("fresh", []byte(vectorBody)), CurrentSecret},

		{"missing", both, "", ""},
		{"no prefix", both, digits, ""},
		{"prefix in capitals", both, "SHA256=" + digits, ""},
		{"prefix apart", both, "sha256= " + digits, ""},
		{"prefix alone", both, "sha256=", ""},
		{"prefix twice", both, "sha256=" + vectorSignature, ""},
		{"short", both, vectorSignature[:len(vectorSignature)-2], ""},
		{"odd", both, vectorSignature[:len(vectorSignature)-1], ""},
		{"long", both, vectorSignature + "00", ""},
		{"not hex", both, "sha256=" + strings.Repeat("g", 64), ""},
		{"other secret", both, other, ""},
		{"empty secret does not verify", Secrets{Current: "fresh"}, Sign("", []byte(vectorBody)), ""},
		{"empty current does not verify", Secrets{Previous: "fresh"}, Sign("", []byte(vectorBody)), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			adapter := ContractAdapter{Secrets: tc.secrets, Tolerance: 30 * time.Minute}
			got, err := adapter.Verify(delivery(tc.signature, now), []byte(vectorBody), now)
			if got != tc.want {
				t.Errorf("verified by %q, want %q", got, tc.want)
			}
			if wrong := wantFault(t, err, fault.Unauthenticated); (tc.want == "") != (wrong == "invalid_signature") {
				t.Errorf("got fault %q", wrong)
			}
		})
	}
}

func TestVerifyNeedsTheRawBytes(t *testing.T) {
	adapter := ContractAdapter{Secrets: Secrets{Current: vectorSecret}}
	for _, body := range []string{"", vectorBody + "\n", strings.Replace(vectorBody, ":", ": ", 1), strings.Replace(vectorBody, "128", "129", 1)} {
		if _, err := adapter.Verify(delivery(vectorSignature, now), []byte(body), now); wantFault(t, err, fault.Unauthenticated) != "invalid_signature" {
			t.Errorf("%q: %v", body, err)
		}
	}
	// several header lines count as one list
	header := delivery(Sign("other", []byte(vectorBody)), now)
	header.Add(SignatureHeader, vectorSignature)
	if name, err := adapter.Verify(header, []byte(vectorBody), now); name != CurrentSecret || err != nil {
		t.Errorf("two lines: %q, %v", name, err)
	}
}

func TestVerifyUnconfigured(t *testing.T) {
	_, err := ContractAdapter{}.Verify(delivery(Sign("", []byte(vectorBody)), now), []byte(vectorBody), now)
	if got := wantFault(t, err, fault.Unavailable); got != "webhook_not_configured" {
		t.Errorf("got %q", got)
	}
}

func TestInvalidSignatureMessage(t *testing.T) {
	_, err := ContractAdapter{Secrets: Secrets{Current: "s"}}.Verify(http.Header{}, nil, now)
	var f *fault.Error
	if !errors.As(err, &f) || f.Detail != "Invalid webhook signature." {
		t.Errorf("got %v", err)
	}
}

func TestVerifyAge(t *testing.T) {
	at := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	const half = 30 * time.Minute
	for _, tc := range []struct {
		name      string
		timestamp string
		tolerance time.Duration
		ok        bool
	}{
		{"now", at(0), half, true},
		{"oldest", at(-half), half, true},
		{"too old", at(-half - time.Second), half, false},
		{"newest", at(half), half, true},
		{"too new", at(half + time.Second), half, false},
		{"age not checked", "0", 0, true},
		{"far future, age not checked", "9223372036854775807", 0, true},
		{"largest", "9223372036854775807", half, false},
		{"smallest", "-9223372036854775808", half, false},
		{"too large to read", "9223372036854775808", 0, false},
		{"missing", "", half, false},
		{"missing, age not checked", "", 0, false},
		{"fraction", at(0) + ".0", half, false},
		{"text", "2026-01-15T13:46:00Z", half, false},
		{"milliseconds", strconv.FormatInt(now.UnixMilli(), 10), half, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			header := http.Header{SignatureHeader: {vectorSignature}, TimestampHeader: {tc.timestamp}}
			adapter := ContractAdapter{Secrets: Secrets{Current: vectorSecret}, Tolerance: tc.tolerance}
			name, err := adapter.Verify(header, []byte(vectorBody), now)
			if wrong := wantFault(t, err, fault.Unauthenticated); tc.ok != (wrong == "") || !tc.ok && wrong != "stale_timestamp" {
				t.Errorf("got fault %q", wrong)
			}
			if tc.ok != (name == CurrentSecret) {
				t.Errorf("verified by %q", name)
			}
		})
	}
	// the signature is checked first
	_, err := ContractAdapter{Secrets: Secrets{Current: "x"}, Tolerance: half}.Verify(delivery(vectorSignature, time.Time{}), []byte(vectorBody), now)
	if got := wantFault(t, err, fault.Unauthenticated); got != "invalid_signature" {
		t.Errorf("wrong in both: %q", got)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	adapter := ContractAdapter{Secrets: Secrets{Current: "topsecret", Previous: "topsecret"}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("start", "adapter", adapter, "secrets", adapter.Secrets)
	encoded, err := json.Marshal(adapter)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v %+v %#v %s %q %x", adapter, adapter, adapter, adapter.Secrets, adapter.Secrets, adapter.Secrets)
	if all := text + log.String() + string(encoded); strings.Contains(all, "topsecret") || strings.Contains(all, "746f70") {
		t.Errorf("printed %s", all)
	}
}

func TestSourceAllowed(t *testing.T) {
	production := []netip.Prefix{netip.MustParsePrefix("52.22.140.0/24"), netip.MustParsePrefix("52.22.141.0/24"), netip.MustParsePrefix("34.205.120.0/24")}
	for addr, want := range map[string]bool{
		"52.22.140.0":         true,
		"52.22.141.255":       true,
		"34.205.120.7":        true,
		"::ffff:34.205.120.7": true,
		"52.22.142.1":         false,
		"34.205.121.0":        false,
		"::1":                 false,
	} {
		if got := SourceAllowed(netip.MustParseAddr(addr), production); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if !SourceAllowed(netip.MustParseAddr("203.0.113.9"), nil) || SourceAllowed(netip.Addr{}, production) {
		t.Error("an empty list allows all, an unknown address is in none")
	}
}

// Only a body signed with a configured secret is verified.
func FuzzVerify(f *testing.F) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	f.Add(vectorSignature, stamp, []byte(vectorBody))
	f.Add("sha256=00,"+vectorSignature, stamp, []byte(vectorBody))
	f.Add(Sign("", []byte("{}")), stamp, []byte("{}"))
	f.Add(Sign("old", []byte("{}"))+" , ", "-1", []byte("{}"))
	f.Add("sha256=,=,sha256", "99999999999999999999", []byte(nil))
	adapter := ContractAdapter{Secrets: Secrets{Current: vectorSecret, Previous: "old"}, Tolerance: time.Minute}
	secrets := map[SecretName]string{CurrentSecret: vectorSecret, PreviousSecret: "old"}
	f.Fuzz(func(t *testing.T, signature, timestamp string, body []byte) {
		header := http.Header{SignatureHeader: {signature}, TimestampHeader: {timestamp}}
		name, err := adapter.Verify(header, body, now)
		if err != nil {
			if got := wantFault(t, err, fault.Unauthenticated); name != "" || got != "invalid_signature" && got != "stale_timestamp" {
				t.Errorf("%q with %q", name, got)
			}
			return
		}
		if !strings.Contains(strings.ToLower(signature), Sign(secrets[name], body)) {
			t.Errorf("%q verified as %s", signature, name)
		}
	})
}

func ExampleContractAdapter_Verify() {
	adapter := ContractAdapter{Secrets: Secrets{Current: "whsec_test_2f6d0c"}, Tolerance: 30 * time.Minute}
	at := time.Date(2026, 1, 15, 13, 45, 2, 0, time.UTC)
	body := []byte(`{"event_type":"hub.heartbeat","hub_id":"HUB-9","timestamp":"2026-01-15T13:45:00Z"}`)

	header := http.Header{}
	header.Set(SignatureHeader, Sign("whsec_test_2f6d0c", body))
	header.Set(TimestampHeader, "1768484702")
	fmt.Println(adapter.Verify(header, body, at))

	header.Set(SignatureHeader, Sign("guessed", body))
	fmt.Println(adapter.Verify(header, body, at))
	// Output:
	// current <nil>
	//  invalid_signature
}
