package fault_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

func TestFields(t *testing.T) {
	if err := (fault.Fields{}).Err(); err != nil {
		t.Errorf("no field is wrong, yet %v", err)
	}
	fields := fault.Fields{}
	fields.Add("b", "second")
	fields.Add("a", "secret value 42")
	var refused *fault.Error
	if !errors.As(fields.Err(), &refused) || refused.Kind != fault.Invalid || refused.Code != "validation_error" {
		t.Fatalf("%v", fields.Err())
	}
	// The log text contains the sorted field names, never the messages.
	if text := refused.Error(); text != "validation_error (a, b)" || strings.Contains(text, "42") {
		t.Error(text)
	}
}

func TestError(t *testing.T) {
	err := fault.New(fault.Locked, "account_locked", "Account locked.").With("locked_until", "x").After(time.Minute).Because(io.EOF)
	if !errors.Is(err, io.EOF) || err.Extra["locked_until"] != "x" || err.RetryAfter != time.Minute {
		t.Errorf("%+v", err)
	}
	if err.Error() != "account_locked: EOF" {
		t.Error(err.Error())
	}
	for kind, err := range map[fault.Kind]*fault.Error{
		fault.NotFound: fault.Missing(), fault.Forbidden: fault.Denied(), fault.Invalid: fault.State("invalid_state", "No."),
	} {
		if err.Kind != kind || err.Code == "" || err.Detail == "" {
			t.Errorf("%+v", err)
		}
	}
}
