package config

// Lease decides which of several processes writes the practice's database. Source: docs/lease.md.
type Lease struct {
	Store string `env:"LEASE" envDefault:"off" oneof:"nats,off" doc:"nats: only the process that holds the practice's lease at VIGIL_EVENTS_URL writes; off: this is the only process"`
	Node  string `env:"NODE" doc:"name of this process for people, in the lease and in the table epochs; empty = the host's name"`
}

// Center configures the exchange of tokens with centers of several practices. Source: docs/decisions/authentication.md, "Token exchange".
type Center struct {
	ClientIDs []string `env:"CENTER_CLIENT_IDS" doc:"ids of centers at VIGIL_OIDC_ISSUER, comma separated: ID tokens issued to them are exchanged for access tokens here; empty = none"`
}

// Required reports whether the process must hold a lease.
func (l Lease) Required() bool { return l.Store == "nats" }

func (l *loader) checkLease(s *Settings) {
	if len(s.Center.ClientIDs) > 0 && !s.OIDC.Configured() {
		l.report(Prefix+"OIDC_ISSUER", "is required with "+Prefix+"CENTER_CLIENT_IDS")
	}
	if !s.Lease.Required() {
		return
	}
	if !s.Events.Configured() {
		l.report(Prefix+"EVENTS_URL", "is required with "+Prefix+"LEASE=nats")
	}
	if s.Events.Practice == "" {
		l.report(Prefix+"PRACTICE", "is required with "+Prefix+"LEASE=nats")
	}
}
