package webhooks

import (
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Body is the body of a request that creates or changes a webhook.
type Body struct {
	URL           validate.String                   `json:"url"`
	Events        validate.Field[[]validate.String] `json:"events"`
	Active        validate.Boolean                  `json:"active"`
	IncludeValues validate.Boolean                  `json:"include_values"`
	// CurrentPassword is the caller's, without a fresh sign-in.
	CurrentPassword validate.String `json:"current_password"`
}

// Draft applies a validated body to the current values of a webhook.
type Draft func(before collections.WebhookValues) collections.WebhookValues

// SendsElsewhere reports whether a change makes a webhook send values, or send to another address. A person needs reauthentication for it.
func (d Draft) SendsElsewhere(before collections.WebhookValues) bool {
	return sendsElsewhere(before, d(before))
}

func sendsElsewhere(before, after collections.WebhookValues) bool {
	return after.IncludeValues && !before.IncludeValues || before.URL != "" && after.URL != before.URL
}

// ReadNew validates the body of a webhook to be created.
func (e *Engine) ReadNew(b Body, c *validate.Checks) Draft {
	for name, sent := range map[string]bool{"url": b.URL.Sent(), "events": b.Events.Sent()} {
		if !sent {
			c.Reject(name, "This field is required.")
		}
	}
	return e.ReadChange(b, c)
}

// ReadChange validates the body of a change. Members that the body omits keep their values.
func (e *Engine) ReadChange(b Body, c *validate.Checks) Draft {
	url, events := e.readURL(c, b.URL), readEvents(c, b.Events)
	active, values := readFlag(c, "active", b.Active), readFlag(c, "include_values", b.IncludeValues)
	return func(v collections.WebhookValues) collections.WebhookValues {
		if b.URL.Sent() {
			v.URL = url
		}
		if b.Events.Sent() {
			v.Events = events
		}
		if b.Active.Sent() {
			v.Active = active
		}
		if b.IncludeValues.Sent() {
			v.IncludeValues = values
		}
		return v
	}
}

// readURL validates a receiver's URL as far as possible without resolving its host name.
func (e *Engine) readURL(c *validate.Checks, f validate.String) string {
	if !f.Sent() {
		return ""
	}
	at := c.Text("url", f, validate.Required(egress.MaxURLLength).Identifier())
	if at != "" && e.Client.Check(at) != nil {
		c.Reject("url", "Must be an https address of a public host, without user or fragment.")
		return ""
	}
	return at
}

const notEvents = "Must be a list of events."

func readEvents(c *validate.Checks, f validate.Field[[]validate.String]) []string {
	events := []string{}
	switch {
	case f.Null():
		c.Reject("events", notEvents)
	case f.Given() && (len(f.Value) == 0 || len(f.Value) > 2*len(Events)):
		c.Reject("events", fmt.Sprintf("Name 1 to %d events.", len(Events)))
		return events
	}
	for name, text := range validate.Texts(c, "events", f, 2*len(Events), notEvents, validate.Required(0).Identifier()) {
		switch {
		case slices.Contains(events, text):
		case !slices.Contains(Events, text):
			c.Reject(name, "Unknown event.")
		default:
			events = append(events, text)
		}
	}
	return events
}

func readFlag(c *validate.Checks, name string, f validate.Boolean) bool {
	if !f.Sent() {
		return false
	}
	flag := c.Boolean(name, f, true)
	return flag != nil && *flag
}
