// Package events keeps device events in a NATS JetStream stream, from the ingress that acknowledges them to the practice that stores them.
// It defines subjects, limits and errors; what an event contains is sealed by the envelope package. Rules: docs/decisions/events.md.
package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The subjects. Those of practices are their prefix and the practice's name.
const (
	SubjectPrefix = "events."
	Unassigned    = SubjectPrefix + "unassigned" // events of devices without one owner
	Dead          = SubjectPrefix + "dead"       // events that a practice could not store
)

// Headers of a message. They hold no content of the event.
const (
	// DeviceHeader names the device, as a keyed hash: events of one device are stored in order.
	DeviceHeader = "Vigil-Device"
	// ReasonHeader is why an event is unassigned or dead.
	ReasonHeader = "Vigil-Reason"
	// PracticeHeader is the practice that a dead event was for.
	PracticeHeader = "Vigil-Practice"
)

// Reasons why an event is unassigned, or dead.
const (
	ReasonUnknown    = "unknown_device"
	ReasonOverlap    = "overlapping_claims"
	ReasonNoIdentity = "no_identity" // none of the practice's keys opens it
	ReasonFailed     = "failed"
)

// dedupeWindow is how long the stream recognizes a repeated message: longer than the vendors' retries, the last after 15 minutes.
const dedupeWindow = 30 * time.Minute

// Errors of a publication. After either the sender has to send the event again.
var (
	ErrFull        = errors.New("the event stream is full")
	ErrUnavailable = errors.New("the event stream does not acknowledge")
)

// Options configure the stream and the connection to it.
type Options struct {
	// URLs are the servers, comma separated.
	URLs string
	// Credentials are the content of a NATS credentials file; empty for none.
	Credentials []byte
	// Name identifies the process at the server.
	Name      string
	Stream    string
	Replicas  int
	Retention time.Duration
	// MaxBytes is where the stream is full; 0 is no limit.
	MaxBytes int64
	Log      *slog.Logger
}

// Stream is a connection to the stream.
type Stream struct {
	options Options
	conn    *nats.Conn
	js      jetstream.JetStream
}

// Subject returns the subject of a practice's events.
func Subject(practice string) string { return SubjectPrefix + practice }

// Connect returns a stream that connects, and connects again whenever the connection is lost, in the background. A server that refuses the
// credentials is tried again too, because it may get them later.
func Connect(o Options) (*Stream, error) {
	options := []nats.Option{
		nats.Name(o.Name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // a publication without a connection fails at once, so that its sender is answered
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			o.Log.Warn("event stream unreachable; reconnecting", slog.Any("error", err))
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("event stream disconnected; reconnecting", slog.Any("error", err))
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			o.Log.Error("event stream reported an error", slog.Any("error", err))
		}),
	}
	if len(o.Credentials) > 0 {
		options = append(options, nats.UserCredentialBytes(o.Credentials))
	}
	conn, err := nats.Connect(o.URLs, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to the event stream: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return &Stream{options: o, conn: conn, js: js}, nil
}

// Close ends the connection.
func (s *Stream) Close() { s.conn.Close() }

// Connected reports whether there is a connection.
func (s *Stream) Connected() bool { return s.conn.IsConnected() }

// JetStream returns the connection's JetStream, for the directory and the leases.
func (s *Stream) JetStream() jetstream.JetStream { return s.js }

// Create creates the stream, or updates its limits. A full stream rejects new events, and never drops acknowledged ones before the retention.
func (s *Stream) Create(ctx context.Context) error {
	_, err := s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: s.options.Stream, Subjects: []string{SubjectPrefix + ">"}, Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, Replicas: s.options.Replicas, MaxAge: s.options.Retention, MaxBytes: cmpOrUnlimited(s.options.MaxBytes),
		Duplicates: min(dedupeWindow, s.options.Retention), AllowDirect: true,
	})
	if err != nil {
		return fmt.Errorf("create the event stream: %w", err)
	}
	return nil
}

func cmpOrUnlimited(limit int64) int64 {
	if limit == 0 {
		return -1
	}
	return limit
}

// Message is an event to publish. Repeats with the same ID within half an hour are stored once.
type Message struct {
	Subject string
	ID      string
	Header  map[string]string
	Data    []byte
}

// Publish returns when a quorum of the servers has stored the message. Errors: [ErrFull], [ErrUnavailable]; the message may be stored then.
func (s *Stream) Publish(ctx context.Context, m Message) error {
	msg := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{}}
	for name, value := range m.Header {
		msg.Header.Set(name, value)
	}
	_, err := s.js.PublishMsg(ctx, msg, jetstream.WithMsgID(m.ID), jetstream.WithExpectStream(s.options.Stream))
	return publishError(err)
}

// streamStoreFailed is the server's code for a message that it could not store; its text names a limit if the stream is full.
const streamStoreFailed jetstream.ErrorCode = 10077

func publishError(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok && refused.ErrorCode == streamStoreFailed && strings.Contains(refused.Description, "maximum") {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
