package sandbox

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

//go:embed phones.html
var phonesPage []byte

// PhoneText is a text or call on a simulated phone.
type PhoneText struct {
	ID     string    `json:"id"`
	Phone  string    `json:"phone"`  // the patient's number
	IsOut  bool      `json:"is_out"` // from the phone
	Voice  bool      `json:"voice"`
	Text   string    `json:"text"`
	SentAt time.Time `json:"sent_at"`
}

// Phones is a messaging provider together with its patients' phones: it accepts texts in Vigil's
// `http` form, reports them as delivered, shows them on a page, and sends what is typed there as a
// reply.
type Phones struct {
	key      *standard.Webhook
	practice string // the practice's number
	now      func() time.Time
	mux      *http.ServeMux

	mu      sync.Mutex
	service string // its address, known once it listens
	texts   []PhoneText
	sent    int
}

// NewPhones returns phones that share a secret (whsec_…) with the service, which sends from the practice's number.
func NewPhones(secret, practice string, now func() time.Time) (*Phones, error) {
	key, err := standard.NewWebhook(secret)
	if err != nil {
		return nil, fmt.Errorf("the secret of the phones: %w", err)
	}
	p := &Phones{key: key, practice: practice, now: now, mux: http.NewServeMux()}
	p.mux.HandleFunc("POST /phones/send", p.receive)
	p.mux.HandleFunc("GET /phones/texts", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, "application/json", p.Texts())
	})
	p.mux.HandleFunc("POST /phones/reply", p.reply)
	p.mux.HandleFunc("GET /phones/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(phonesPage) // a reader who left needs no answer
	})
	return p, nil
}

// ConnectTo sets the address of the service, to which replies are sent.
func (p *Phones) ConnectTo(service string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.service = service
}

// Texts returns what the phones sent and got, oldest first, never nil.
func (p *Phones) Texts() []PhoneText {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]PhoneText{}, p.texts...)
}

// ServeHTTP serves the provider's endpoint and the page under /phones/.
func (p *Phones) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// receive takes a message from the service; the same id again is the same message.
func (p *Phones) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || p.key.VerifyIgnoringTimestamp(body, r.Header) != nil {
		http.Error(w, "the signature is missing or wrong", http.StatusUnauthorized)
		return
	}
	var message struct{ ID, To, Text, Channel string }
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	if !slices.ContainsFunc(p.texts, func(t PhoneText) bool { return t.ID == message.ID }) {
		p.texts = append(p.texts, PhoneText{ID: message.ID, Phone: message.To, Voice: message.Channel == "voice", Text: message.Text, SentAt: p.now().UTC()})
	}
	p.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	go func() {
		_, _ = p.post(context.WithoutCancel(r.Context()), "status", map[string]string{"id": message.ID, "state": "delivered"})
	}() // a lost report is the provider's
}

// reply sends what a patient typed: {phone, text}.
func (p *Phones) reply(w http.ResponseWriter, r *http.Request) {
	var typed struct{ Phone, Text string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&typed); err != nil || typed.Phone == "" {
		http.Error(w, "a reply is {phone, text}", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.sent++
	id := fmt.Sprintf("phone-%d-%d", p.now().UnixNano(), p.sent)
	p.mu.Unlock()
	status, err := p.post(r.Context(), "inbound", map[string]string{"id": id, "from": typed.Phone, "to": p.practice, "text": typed.Text})
	if err != nil || status != http.StatusOK {
		http.Error(w, fmt.Sprintf("the service answered %d", status), http.StatusBadGateway)
		return
	}
	p.mu.Lock()
	p.texts = append(p.texts, PhoneText{ID: id, Phone: typed.Phone, IsOut: true, Text: typed.Text, SentAt: p.now().UTC()})
	p.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// post sends a signed callback to the service.
func (p *Phones) post(ctx context.Context, callback string, body map[string]string) (status int, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	at := p.now()
	signature, err := p.key.Sign(body["id"], at, raw)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	address := p.service + "/api/v1/messaging/" + callback + "/"
	p.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(standard.HeaderWebhookID, body["id"])
	r.Header.Set(standard.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	r.Header.Set(standard.HeaderWebhookSignature, signature)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
