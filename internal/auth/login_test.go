package auth_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestLogin(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse, vigiltest.Email("nurse@vigil.test"))
	before := vigiltest.RowCounts(t, app)
	body := credentials("  Nurse@VIGIL.test ", vigiltest.Password)
	body.DeviceID = validate.Of("phone-1")
	session, err := e.Login(t.Context(), app, withCode(body, "123456"), origin, clock) // no second factor: the code is ignored
	if err != nil {
		t.Fatal(err)
	}
	if session.AccessExpiresIn != 15*time.Minute || session.RefreshExpiresIn != 24*time.Hour || session.User.Id != user.Id {
		t.Errorf("session lasts %v and %v", session.AccessExpiresIn, session.RefreshExpiresIn)
	}
	if added := vigiltest.RowsAdded(t, app, before); !maps.Equal(added, map[string]int{"refresh_tokens": 1, "audit_log": 1}) {
		t.Errorf("added %v", added)
	}
	caller, err := e.Authenticate(app, session.Access, clock)
	if caller.Family == "" {
		t.Error("the access token names no sign-in")
	}
	caller.Family = ""
	if want := (auth.Caller{RecordID: user.Id, ID: 1, Email: "nurse@vigil.test", Role: authz.Nurse}); err != nil || !reflect.DeepEqual(caller, want) {
		t.Errorf("the access token is %+v, %v", caller, err)
	}
	stored, err := collections.FindUser(app, user.Id)
	if err != nil || !stored.LastLoginAt().Equal(clock) {
		t.Errorf("last login at %v, %v", stored.LastLoginAt(), err)
	}
	record, err := app.FindFirstRecordByData(collections.RefreshTokens, "user", user.Id)
	if err != nil {
		t.Fatal(err)
	}
	if raw := fmt.Sprint(record.FieldsData()); strings.Contains(raw, session.Refresh) || record.GetString("device_id") != "phone-1" || record.GetString("source_ip") != "192.0.2.1" {
		t.Errorf("stored %s", raw)
	}
	if text := fmt.Sprintf("%v %+v", session, &session); strings.Contains(text, session.Refresh) || strings.Contains(text, session.Access) {
		t.Error("a session prints its tokens")
	}
}

func TestLoginFields(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	for name, test := range map[string]struct {
		body   auth.LoginBody
		fields string
	}{
		"empty":         {auth.LoginBody{}, "map[email:[This field is required.] password:[This field is required.]]"},
		"blank address": {credentials(" ", "x"), "map[email:[This field may not be blank.]]"},
		"long code":     {withCode(credentials("a@b.c", "x"), "123456789012"), "map[totp_code:[Ensure this field has no more than 11 characters.]]"},
	} {
		before := vigiltest.RowCounts(t, app)
		_, err := e.Login(t.Context(), app, test.body, origin, clock)
		var f *fault.Error
		if !errors.As(err, &f) || fmt.Sprint(f.Fields) != test.fields {
			t.Errorf("%s: %v", name, err)
		}
		if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
			t.Errorf("%s: added %v", name, added)
		}
	}
}

func TestLoginRefusals(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	long := strings.Repeat("Aa1!", 18)[:71]
	vigiltest.User(t, app, authz.Nurse, vigiltest.Email("kim@vigil.test"))
	vigiltest.User(t, app, authz.Nurse, vigiltest.Email("long@vigil.test"), vigiltest.With("password", long))
	vigiltest.User(t, app, authz.Nurse, vigiltest.Email("gone@vigil.test"), vigiltest.Inactive())
	vigiltest.User(t, app, authz.Patient, vigiltest.Email("p1@vigil.test"), vigiltest.PortalOf(patient(t, app, "A-1", false)))
	vigiltest.User(t, app, authz.Patient, vigiltest.Email("p2@vigil.test"), vigiltest.PortalOf(patient(t, app, "A-2", true)))
	vigiltest.User(t, app, authz.Patient, vigiltest.Email("p3@vigil.test"), vigiltest.PortalOf(collections.NewUUID()))
	tests := []struct{ name, email, password, want string }{
		{"right", "kim@vigil.test", vigiltest.Password, ""},
		{"wrong password", "kim@vigil.test", "wrong", "authentication_failed"},
		{"password in another case", "kim@vigil.test", strings.ToLower(vigiltest.Password), "authentication_failed"},
		{"password with a space", "kim@vigil.test", vigiltest.Password + " ", "authentication_failed"},
		{"ten thousand bytes", "kim@vigil.test", vigiltest.Password + strings.Repeat("x", 10_000), "authentication_failed"},
		{"71 bytes", "long@vigil.test", long, ""},
		{"71 right bytes and one more", "long@vigil.test", long + "x", "authentication_failed"},
		{"71 right bytes and ten thousand more", "long@vigil.test", long + strings.Repeat("x", 10_000), "authentication_failed"},
		{"inactive", "gone@vigil.test", vigiltest.Password, "authentication_failed"},
		{"portal", "p1@vigil.test", vigiltest.Password, ""},
		{"portal of a deleted patient", "p2@vigil.test", vigiltest.Password, "authentication_failed"},
		{"portal of no patient", "p3@vigil.test", vigiltest.Password, "authentication_failed"},
		{"not an address", "kim", vigiltest.Password, "authentication_failed"},
		{"SQL", "kim@vigil.test' OR '1'='1", vigiltest.Password, "authentication_failed"},
		{"Kelvin sign, which Unicode holds to be a K", "\u212Aim@vigil.test", vigiltest.Password, ""},
		{"dotted capital I", "k\u0130m@vigil.test", vigiltest.Password, "authentication_failed"},
		{"Cyrillic i", "k\u0456m@vigil.test", vigiltest.Password, "authentication_failed"},
		{"full width", "\uFF4Bim@vigil.test", vigiltest.Password, "authentication_failed"},
		{"zero width", "kim\u200B@vigil.test", vigiltest.Password, "authentication_failed"},
	}
	for _, test := range tests {
		_, err := e.Login(t.Context(), app, credentials(test.email, test.password), origin, clock)
		wantCode(t, test.name, err, test.want)
	}
}

func patient(t *testing.T, app core.App, mrn string, deleted bool) string {
	t.Helper()
	record, err := collections.NewRecord(app, collections.Patients)
	if err != nil {
		t.Fatal(err)
	}
	record.Id = collections.NewUUID()
	record.Load(map[string]any{"first_name": "A", "last_name": "B", "date_of_birth": "1950-01-01", "gender": "unknown", "mrn": mrn})
	if deleted {
		record.Set("deleted_at", collections.FormatInstant(clock))
	}
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
	return record.Id
}

func TestFoldEmail(t *testing.T) {
	for in, want := range map[string]string{
		" Kim@Vigil.TEST ": "kim@vigil.test", "ZOË@x.y": "zoë@x.y", "\u212Aim@x.y": "\u212Aim@x.y", "\u0130@x.y": "\u0130@x.y", "": "",
	} {
		if got := auth.FoldEmail(in); got != want || auth.FoldEmail(got) != got {
			t.Errorf("FoldEmail(%q) is %q", in, got)
		}
	}
}

// TestDecoyCostsAsMuch checks that the decoy is a well-formed hash of the same cost, so that an unknown address takes as long as a known one.
func TestDecoyCostsAsMuch(t *testing.T) {
	app := vigiltest.NewApp(t)
	user := vigiltest.User(t, app, authz.Nurse)
	decoy, err := auth.DecoyHash(app)
	if err != nil {
		t.Fatal(err)
	}
	decoyCost, err := bcrypt.Cost([]byte(decoy))
	if err != nil {
		t.Fatal(err)
	}
	userCost, err := bcrypt.Cost([]byte(user.GetString("password:hash")))
	if err != nil || decoyCost != userCost {
		t.Errorf("the decoy costs %d, a user %d, %v", decoyCost, userCost, err)
	}
	if err := bcrypt.CompareHashAndPassword([]byte(decoy), []byte("x")); !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
		t.Errorf("checking the decoy: %v", err)
	}
}

// TestLoginSeesConcurrentChanges checks that the decision reads the account again after the password check.
func TestLoginSeesConcurrentChanges(t *testing.T) {
	for name, change := range map[string]func(*collections.User){
		"password": func(u *collections.User) { u.SetPassword("Another-Horse-43") },
		"state":    func(u *collections.User) { u.Set("is_active", false) },
	} {
		app, e := vigiltest.NewApp(t), newEngine()
		user := vigiltest.User(t, app, authz.Nurse)
		err := e.LoginWhile(t.Context(), app, credentials(user.Email(), vigiltest.Password), origin, clock, func() {
			change(user)
			if err := app.Save(user); err != nil {
				t.Fatal(err)
			}
		})
		wantCode(t, name, err, "authentication_failed")
	}
}
