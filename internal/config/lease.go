package config

// Lease decides which of several processes writes the practice's database. Source: docs/lease.md.
type Lease struct {
	Store string `env:"LEASE" envDefault:"off" oneof:"nats,off" doc:"nats: only the process that holds the practice's lease at VIGIL_EVENTS_URL writes; off: this is the only process"`
	Node  string `env:"NODE" doc:"name of this process for people, in the lease and in the table epochs; empty = the host's name"`
}

// Required reports whether the process must hold a lease.
func (l Lease) Required() bool { return l.Store == "nats" }

func (l *loader) checkLease(s *Settings) {
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
