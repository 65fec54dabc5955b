package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/smtp"
	"strings"
	"testing"
	"time"
)

func newCatcher(t *testing.T, onMessage func(Message)) *MailCatcher {
	t.Helper()
	catcher, err := NewMailCatcher(time.Now, onMessage)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := catcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return catcher
}

const resetMail = "From: Vigil <no-reply@vigil.example>\r\n" +
	"To: nurse@vigil.example\r\n" +
	"Subject: =?UTF-8?q?Set_your_password_=E2=9C=93?=\r\n" +
	"MIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=outer\r\n\r\n" +
	"--outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n" +
	"--inner\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
	"Open http://x.example/reset?token=3Dabc and choose one.\r\n" +
	"--inner\r\nContent-Type: text/html; charset=UTF-8\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
	"PGI+SGVsbG88\r\nL2I+\r\n" +
	"--inner--\r\n--outer--\r\n"

func TestMailCatcher(t *testing.T) {
	received := make(chan Message, 1)
	catcher := newCatcher(t, func(m Message) { received <- m })
	auth := smtp.PlainAuth("", "anyone", "anything", "127.0.0.1")
	if err := smtp.SendMail(catcher.Addr(), auth, "no-reply@vigil.example", []string{"nurse@vigil.example", "ma@vigil.example"}, []byte(resetMail)); err != nil {
		t.Fatal(err)
	}
	got, err := catcher.WaitFor(t.Context(), func(m Message) bool { return strings.HasPrefix(m.Subject, "Set your") })
	if err != nil {
		t.Fatal(err)
	}
	if got.From != "no-reply@vigil.example" || len(got.To) != 2 || got.Subject != "Set your password ✓" ||
		got.Text != "Open http://x.example/reset?token=abc and choose one." || got.HTML != "<b>Hello</b>" || string(got.Raw) != resetMail {
		t.Errorf("caught %+v", got)
	}
	if m := <-received; m.Subject != got.Subject {
		t.Errorf("received %q", m.Subject)
	}

	recorder := httptest.NewRecorder()
	catcher.ServeHTTP(recorder, httptest.NewRequest("GET", "/", nil))
	var list []map[string]any
	if err := json.Unmarshal(recorder.Body.Bytes(), &list); err != nil || len(list) != 1 || list[0]["html"] != "<b>Hello</b>" {
		t.Errorf("listing %s, err %v", recorder.Body, err)
	}
}

func TestPlainMailWithoutSignIn(t *testing.T) {
	catcher := newCatcher(t, nil)
	if recorder := httptest.NewRecorder(); len(catcher.Messages()) == 0 {
		catcher.ServeHTTP(recorder, httptest.NewRequest("GET", "/", nil))
		if strings.TrimSpace(recorder.Body.String()) != "[]" {
			t.Errorf("empty listing %s", recorder.Body)
		}
	}
	for _, text := range []string{"Subject: one\r\n\r\nfirst\r\n", "Subject: two\r\n\r\nsecond\r\n", "not a mail"} {
		if err := smtp.SendMail(catcher.Addr(), nil, "a@x.example", []string{"b@x.example"}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	messages := catcher.Messages()
	if len(messages) != 3 || messages[0].Text != "first\r\n" || messages[1].Subject != "two" || !strings.HasPrefix(string(messages[2].Raw), "not a mail") {
		t.Errorf("caught %+v", messages)
	}
}

func TestWaitForAMailThatArrivesLater(t *testing.T) {
	catcher := newCatcher(t, nil)
	waiting := make(chan error)
	go func() {
		_, err := catcher.WaitFor(t.Context(), func(m Message) bool { return m.Subject == "late" })
		waiting <- err
	}()
	for _, subject := range []string{"early", "late"} {
		if err := smtp.SendMail(catcher.Addr(), nil, "a@x.example", []string{"b@x.example"}, []byte("Subject: "+subject+"\r\n\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := catcher.WaitFor(ended, func(m Message) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for nothing: %v", err)
	}
}
