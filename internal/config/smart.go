package config

import (
	"errors"
	"net/url"
	"strings"
)

// SMART configures launches from EMRs. Source: docs/decisions/authentication.md, "Launch from the EMR".
type SMART struct {
	Issuers  []SMARTIssuer `env:"ISSUERS" doc:"iss=client_id pairs, comma separated: FHIR base addresses of EMRs that may open Vigil for their users, and Vigil's client id there. https in production"`
	TrustMFA bool          `env:"TRUST_MFA" envDefault:"false" doc:"treat every sign-in at these EMRs as made with a second factor, even when its tokens do not state so"`
}

// SMARTIssuer is an EMR that may launch this service: its FHIR base address and this service's client id there.
type SMARTIssuer struct{ Address, ClientID string }

// parseSMARTIssuers parses iss=client_id pairs.
func parseSMARTIssuers(text string) (pairs []SMARTIssuer, err error) {
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		address, client, ok := strings.Cut(strings.TrimSpace(item), "=")
		parsed, err := url.Parse(address)
		key := strings.TrimSuffix(address, "/")
		if !ok || client == "" || err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.RawQuery != "" || parsed.Fragment != "" || seen[key] {
			return nil, errors.New("must be iss=client_id pairs, comma separated, each with another FHIR base address")
		}
		seen[key] = true
		pairs = append(pairs, SMARTIssuer{address, client})
	}
	return pairs, nil
}
