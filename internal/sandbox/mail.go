package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Message is one caught mail.
type Message struct {
	From       string    `json:"from"` // of the envelope
	To         []string  `json:"to"`   // of the envelope
	Subject    string    `json:"subject"`
	Text       string    `json:"text"`
	HTML       string    `json:"html"`
	Raw        []byte    `json:"-"`
	ReceivedAt time.Time `json:"received_at"`
}

// MailCatcher is an SMTP server that accepts every mail and sign-in, and stores mails in memory.
type MailCatcher struct {
	server    *smtp.Server
	listener  net.Listener
	now       func() time.Time
	onMessage func(Message)

	mu       sync.Mutex
	messages []Message
	arrived  chan struct{} // closed and replaced at each arrival
}

// NewMailCatcher listens on a loopback port and serves until Close. onMessage, if not nil, is called after each mail, without locks.
func NewMailCatcher(now func() time.Time, onMessage func(Message)) (*MailCatcher, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the mail catcher's port: %w", err)
	}
	m := &MailCatcher{listener: listener, now: now, onMessage: onMessage, arrived: make(chan struct{})}
	m.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &mailSession{catcher: m}, nil
	}))
	m.server.Domain = "localhost"
	m.server.AllowInsecureAuth = true
	m.server.EnableSMTPUTF8 = true
	m.server.MaxMessageBytes = 16 << 20
	m.server.ErrorLog = log.New(io.Discard, "", 0) // the sender sees a broken connection
	go func() { _ = m.server.Serve(listener) }()   // it ends with Close
	return m, nil
}

// Addr is the host:port for mail.
func (m *MailCatcher) Addr() string { return m.listener.Addr().String() }

// Port is the port for mail, on 127.0.0.1.
func (m *MailCatcher) Port() int { return m.listener.Addr().(*net.TCPAddr).Port }

// Close stops the server and drops its connections.
func (m *MailCatcher) Close() error {
	err := m.server.Close()
	// A server that is not serving yet has no listener.
	if closed := m.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// Messages returns the caught mails, oldest first.
func (m *MailCatcher) Messages() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.messages)
}

// WaitFor returns the oldest mail that matches, now or after it arrives, or the context's error.
func (m *MailCatcher) WaitFor(ctx context.Context, match func(Message) bool) (Message, error) {
	for seen := 0; ; {
		m.mu.Lock()
		messages, arrived := m.messages, m.arrived
		m.mu.Unlock()
		for ; seen < len(messages); seen++ {
			if match(messages[seen]) {
				return messages[seen], nil
			}
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("wait for a mail: %w", ctx.Err())
		}
	}
}

// ServeHTTP lists the mails as JSON, oldest first.
func (m *MailCatcher) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	messages := m.Messages()
	if messages == nil {
		messages = []Message{}
	}
	writeJSON(w, http.StatusOK, "application/json", messages)
}

func (m *MailCatcher) add(message Message) {
	m.mu.Lock()
	m.messages = append(m.messages, message)
	close(m.arrived)
	m.arrived = make(chan struct{})
	m.mu.Unlock()
	if m.onMessage != nil {
		m.onMessage(message)
	}
}

// mailSession is one SMTP connection.
type mailSession struct {
	catcher *MailCatcher
	from    string
	to      []string
}

var _ smtp.AuthSession = (*mailSession)(nil)

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, _, _ string) error { return nil }), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	message := Message{From: s.from, To: s.to, Raw: raw, ReceivedAt: s.catcher.now().UTC()}
	message.read()
	s.catcher.add(message)
	return nil
}

func (s *mailSession) Reset()        { s.from, s.to = "", nil }
func (s *mailSession) Logout() error { return nil }

// read sets subject, text and HTML if the mail is well formed; Raw has the rest.
func (m *Message) read() {
	parsed, err := mail.ReadMessage(bytes.NewReader(m.Raw))
	if err != nil {
		return
	}
	m.Subject = parsed.Header.Get("Subject")
	if decoded, err := new(mime.WordDecoder).DecodeHeader(m.Subject); err == nil {
		m.Subject = decoded
	}
	m.readPart(parsed.Header.Get("Content-Type"), parsed.Header.Get("Content-Transfer-Encoding"), parsed.Body)
}

// readPart reads the first text and the first HTML part, at any depth.
func (m *Message) readPart(contentType, encoding string, body io.Reader) {
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = "text/plain"
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			part, err := parts.NextRawPart()
			if err != nil {
				return
			}
			m.readPart(part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part)
		}
	}
	switch strings.ToLower(encoding) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	raw, err := io.ReadAll(body)
	switch {
	case err != nil:
	case mediaType == "text/plain" && m.Text == "":
		m.Text = string(raw)
	case mediaType == "text/html" && m.HTML == "":
		m.HTML = string(raw)
	}
}
