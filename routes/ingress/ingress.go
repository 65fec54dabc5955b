// Package ingress serves the device vendors' webhooks for several practices: it authenticates an event, finds the practice that owns the
// device, seals the event for it and answers once a quorum of servers has stored it. It stores nothing itself and holds no private key. The
// practice evaluates the event; see internal/ingest. Rules: docs/decisions/events.md, "The ingress".
package ingress

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/events/envelope"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/routes/web"
)

// maxBody bounds a delivery, as for a practice's own webhooks.
const maxBody = 64 << 10

// publishTimeout bounds the wait for the servers' acknowledgement. A vendor waits about ten seconds.
const publishTimeout = 5 * time.Second

// retryAfter is when a vendor should send an event again that was not acknowledged.
const retryAfter = 10 * time.Second

// Publisher stores a message durably; see [events.Stream].
type Publisher interface {
	Publish(ctx context.Context, m events.Message) error
	Connected() bool
}

// Options are the ingress's dependencies.
type Options struct {
	Adapters  gateway.Adapters
	Directory *directory.Directory
	Stream    Publisher
	// DirectoryKey is the secret of the directory's hashes and of the message ids.
	DirectoryKey []byte
	// Organization is the age recipient of events without one owner.
	Organization string
	// Sources are the networks that may send; empty for all.
	Sources []netip.Prefix
	// Address returns the address of a request's sender.
	Address func(*http.Request) string
	Metrics *Metrics
	Log     *slog.Logger
	Clock   func() time.Time
}

// Ingress is the handler of the webhooks.
type Ingress struct{ Options }

// Handler returns the handler: the vendors' webhooks at the paths of a practice, and the probes /health/live and /readyz.
func Handler(o Options) http.Handler {
	i := &Ingress{o}
	mux := http.NewServeMux()
	for _, path := range []string{"/gateway/webhook", "/gateway/webhook/"} {
		mux.HandleFunc("POST "+web.BasePath+path, i.serve(gateway.Contract))
	}
	for _, vendor := range gateway.Vendors() {
		for _, end := range []string{"", "/"} {
			mux.HandleFunc("POST "+web.BasePath+"/gateway/"+string(vendor)+end, i.serve(vendor))
		}
	}
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := i.ready(); err != nil {
			web.WriteFault(w, err)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { web.WriteFault(w, fault.Missing()) })
	return mux
}

// ready returns why no event can be accepted, or nil.
func (i *Ingress) ready() *fault.Error {
	switch {
	case !i.Directory.Loaded():
		return unavailable("directory_not_loaded", "The device directory is not loaded.")
	case !i.Stream.Connected():
		return unavailable("events_unavailable", "The event stream cannot be reached.")
	}
	return nil
}

func unavailable(code, detail string) *fault.Error {
	return fault.New(fault.Unavailable, code, detail+" Send the event again later.").After(retryAfter)
}

// answer is one event of a delivery, as in a practice's own answer.
type answer struct {
	Status          string       `json:"status"` // accepted, ignored or rejected
	EventID         string       `json:"event_id"`
	Reason          string       `json:"reason,omitempty"`
	LeftOut         []string     `json:"left_out,omitempty"`
	EventType       string       `json:"event_type,omitempty"`
	MeasurementType string       `json:"measurement_type,omitempty"`
	FieldErrors     fault.Fields `json:"field_errors,omitempty"`
	// Results are those of all events, if the contract's gateway sent several.
	Results   []answer `json:"results,omitempty"`
	rejection *fault.Error
}

// results are the answers to another vendor.
type results struct {
	Results []answer `json:"results"`
}

func (i *Ingress) serve(vendor gateway.Vendor) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := i.Clock()
		answers, err := i.receive(r, vendor, start)
		i.Metrics.observe(err, i.Clock().Sub(start))
		if err == nil {
			err = rejectionOf(answers)
		}
		switch {
		case err != nil:
			web.WriteFault(w, err)
		case vendor != gateway.Contract:
			web.WriteJSON(w, http.StatusOK, results{Results: answers})
		default:
			first := answers[slices.IndexFunc(answers, func(a answer) bool { return a.rejection == nil })]
			first.EventType, first.MeasurementType = "", ""
			if len(answers) > 1 {
				first.Results = answers
			}
			web.WriteJSON(w, http.StatusOK, first)
		}
	}
}

// rejectionOf returns the first rejection if no event of the delivery can be read.
func rejectionOf(answers []answer) *fault.Error {
	if slices.ContainsFunc(answers, func(a answer) bool { return a.rejection == nil }) {
		return nil
	}
	return answers[0].rejection
}

// receive publishes the events of a request. After an error some of them may be stored; their repeats are recognized.
func (i *Ingress) receive(r *http.Request, vendor gateway.Vendor, now time.Time) ([]answer, *fault.Error) {
	sender := i.Address(r)
	if from, err := netip.ParseAddr(sender); err != nil || !gateway.SourceAllowed(from, i.Sources) {
		return nil, fault.New(fault.Forbidden, "source_not_allowed", "Requests from this address are not accepted.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "parse_error", "The request body could not be read.").Because(err)
	case len(body) > maxBody:
		return nil, fault.New(fault.PayloadTooLarge, "payload_too_large", "The request body is too large.")
	}
	adapter := i.Adapters[vendor]
	if _, err := adapter.Verify(r.Header, body, now); err != nil {
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			return nil, refused
		}
		return nil, unavailable("service_unavailable", "The event could not be authenticated.").Because(err)
	}
	if err := i.ready(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), publishTimeout)
	defer cancel()
	return i.publish(ctx, parse(adapter, body, now), envelope.Envelope{Vendor: string(vendor), ReceivedAt: now, FromAddress: sender})
}

// part is one event of a delivery.
type part struct {
	body      []byte
	event     gateway.Event // as far as it could be parsed
	rejection *fault.Error
}

func parse(adapter gateway.Adapter, body []byte, now time.Time) (parts []part) {
	for _, body := range adapter.Split(body) {
		event, err := gateway.Parse(adapter, body, now)
		rejection, isFault := errors.AsType[*fault.Error](err)
		if err != nil && !isFault {
			rejection = fault.New(fault.Invalid, "parse_error", "The event cannot be read.")
		}
		parts = append(parts, part{body, event, rejection})
	}
	return parts
}

// publish publishes the events in order of measurement, and returns their answers in the order of the request. An event that cannot be read
// is published too: its practice keeps it, and alerts for a dangerous value.
func (i *Ingress) publish(ctx context.Context, parts []part, e envelope.Envelope) ([]answer, *fault.Error) {
	order := make([]int, len(parts))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return parts[a].event.At.Compare(parts[b].event.At) })
	answers := make([]answer, len(parts))
	for _, n := range order {
		e.Body = parts[n].body
		message, err := i.message(parts[n], e)
		if err == nil {
			err = i.Stream.Publish(ctx, message)
		}
		switch {
		case errors.Is(err, events.ErrFull):
			return nil, unavailable("events_full", "The event stream is full.").Because(err)
		case err != nil:
			i.Log.Error("ingress could not publish an event; its vendor has to send it again", slog.Any("error", err))
			return nil, unavailable("events_unavailable", "The event stream does not acknowledge.").Because(err)
		}
		i.Metrics.count(message.Subject)
		answers[n] = answerTo(parts[n], gateway.Vendor(e.Vendor))
	}
	return answers, nil
}

// message seals an event for its owner, or for the company if it has none.
func (i *Ingress) message(p part, e envelope.Envelope) (events.Message, error) {
	ids := directory.Identifiers(i.DirectoryKey, p.event)
	owner := i.Directory.Owner(p.event.EffectiveTime(), ids...)
	subject, recipient := events.Subject(owner.Practice), i.Directory.Recipient(owner.Practice)
	header := map[string]string{}
	if owner.Practice == "" || recipient == "" {
		subject, recipient = events.Unassigned, i.Organization
		header[events.ReasonHeader] = events.ReasonUnknown
		if owner.Overlaps {
			header[events.ReasonHeader] = events.ReasonOverlap
		}
	}
	if len(ids) > 0 {
		header[events.DeviceHeader] = ids[0].Hash
	}
	sealed, err := envelope.Seal(e, recipient)
	return events.Message{Subject: subject, ID: i.messageID(e.Vendor, p), Header: header, Data: sealed}, err
}

// messageID identifies an event: its vendor, its deduplication key and its body, because the same key with other values must reach the
// practice.
func (i *Ingress) messageID(vendor string, p part) string {
	key := ""
	if p.rejection == nil {
		key = p.event.Key()
	}
	mac := hmac.New(sha256.New, i.DirectoryKey)
	for _, text := range []string{vendor, "\n", key, "\n", string(p.body)} { // a key is escaped and has no line end
		mac.Write([]byte(text))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func answerTo(p part, vendor gateway.Vendor) answer {
	a := answer{Status: "accepted", LeftOut: p.event.LeftOut, EventType: string(p.event.Type), MeasurementType: p.event.MeasurementType, rejection: p.rejection}
	switch {
	case p.rejection != nil:
		a.Status, a.EventID, a.Reason, a.FieldErrors = "rejected", gateway.BodyID(vendor, p.body), p.rejection.Code, p.rejection.Fields
	case !p.event.Type.IsKnown():
		a.Status, a.EventID = "ignored", p.event.ID()
	default:
		a.EventID = p.event.ID()
	}
	return a
}

// ClientAddress returns a function that finds the sender's address: the last one in a header of a trusted proxy, or the connection's.
func ClientAddress(proxies []netip.Prefix, headers []string) func(*http.Request) string {
	return func(r *http.Request) string {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return ""
		}
		from := peer.Addr().Unmap().WithZone("")
		if len(proxies) > 0 && !slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(from) }) {
			return from.String()
		}
		for _, name := range headers {
			list := strings.Split(strings.Join(r.Header.Values(name), ","), ",")
			if named, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
				return named.Unmap().String()
			}
		}
		return from.String()
	}
}
