package auth_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// administrator returns a signed-in administrator.
func administrator(t testing.TB, e *auth.Engine, app core.App) auth.Caller {
	t.Helper()
	caller, _ := signedIn(t, e, app, vigiltest.User(t, app, authz.Admin), clock)
	return caller
}

// recorded returns the audited events of a user and the names of changed fields, oldest first, without sign-ins.
func recorded(t testing.TB, app core.App, user *collections.User) string {
	t.Helper()
	entries, _, err := audit.List(app, audit.Filter{ResourceType: "User", ResourceID: fmt.Sprint(user.Number())}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range slices.Backward(entries) {
		if entry.Event != string(audit.Login) {
			list = append(list, entry.Event+fmt.Sprint(entry.Fields()))
		}
	}
	return strings.Join(list, " ")
}

// null returns a field that was sent as null.
func null() (field validate.String) {
	_ = field.UnmarshalJSON([]byte("null"))
	return field
}

func TestRoleChangeEndsSignIns(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(time.Hour))
	admin := administrator(t, e, app)
	nurse := vigiltest.User(t, app, authz.Nurse)
	_, session := signedIn(t, e, app, nurse, clock)
	update := func(patch auth.UserPatch) (*collections.User, error) {
		return e.UpdateUser(t.Context(), app, admin, nurse.Id, patch, origin, clock.Add(time.Minute))
	}

	changed, err := update(auth.UserPatch{FirstName: validate.Of("Florence"), NPI: validate.Of("1234567893"), Role: validate.Of("nurse")})
	if err != nil || changed.FirstName() != "Florence" || changed.LastName() != "Person" || changed.NPI() != "1234567893" {
		t.Fatalf("changed to %s %s, %v", changed.FirstName(), changed.LastName(), err)
	}
	session, err = refresh(e, app, session.Refresh, clock.Add(time.Minute))
	wantCode(t, "after another name and the same role", err, "")
	if _, err := update(auth.UserPatch{FirstName: validate.Of("Florence")}); err != nil {
		t.Error(err)
	}
	if _, err := update(auth.UserPatch{Role: validate.Of("provider"), NPI: validate.Of("")}); err != nil {
		t.Fatal(err)
	}
	if caller := callerOf(t, e, app, session.Access); caller.Role != authz.Provider {
		t.Errorf("the next request is a %s's", caller.Role)
	}
	_, err = refresh(e, app, session.Refresh, clock.Add(time.Minute))
	wantCode(t, "after another role", err, "token_revoked")
	// Unchanged fields are not audited, and a role change has its own event.
	want := "user.update[first_name npi] auth.refresh[] user.update[npi] user.role_change[role]"
	if got := recorded(t, app, nurse); got != want {
		t.Errorf("recorded %s", got)
	}
	if stored := reloadUser(t, app, nurse).GetString("updated_at"); stored != collections.FormatInstant(clock.Add(time.Minute)) {
		t.Errorf("updated at %s", stored)
	}
}

func TestUpdateUserRefuses(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(time.Hour))
	admin := administrator(t, e, app)
	nurse := vigiltest.User(t, app, authz.Nurse)
	here, gone := patient(t, app, "A-1", false), patient(t, app, "A-2", true)
	before := vigiltest.RowCounts(t, app)
	for name, test := range map[string]struct {
		patch auth.UserPatch
		want  string
	}{
		"names that are empty":   {auth.UserPatch{FirstName: validate.Of(""), LastName: validate.Of(" ")}, "first_name last_name"},
		"no role of ours":        {auth.UserPatch{Role: validate.Of("boss")}, "role"},
		"a role in capitals":     {auth.UserPatch{Role: validate.Of("Admin")}, "role"},
		"a wrong check digit":    {auth.UserPatch{NPI: validate.Of("1234567890")}, "npi"},
		"no zone":                {auth.UserPatch{TimeZone: validate.Of("Mars/Olympus")}, "time_zone"},
		"no telephone":           {auth.UserPatch{Phone: validate.Of("x")}, "phone"},
		"no patient's id":        {auth.UserPatch{PatientID: validate.Of("7")}, "patient_id"},
		"a nurse who is linked":  {auth.UserPatch{PatientID: validate.Of(here)}, "patient_id"},
		"linked before the role": {auth.UserPatch{PatientID: validate.Of(here), Role: validate.Of("provider")}, "patient_id"},
	} {
		_, err := e.UpdateUser(t.Context(), app, admin, nurse.Id, test.patch, origin, clock)
		if got := wrongFields(err); got != test.want {
			t.Errorf("%s: %q is wrong, want %q", name, got, test.want)
		}
	}
	for _, nobody := range []string{gone, collections.NewUUID()} {
		_, err := e.UpdateUser(t.Context(), app, admin, nurse.Id, auth.UserPatch{Role: validate.Of("patient"), PatientID: validate.Of(nobody)}, origin, clock)
		wantCode(t, "a link to nobody", err, "not_found")
	}
	_, err := e.UpdateUser(t.Context(), app, admin, "nobody", auth.UserPatch{}, origin, clock)
	wantCode(t, "nobody", err, "not_found")
	if added := vigiltest.RowsAdded(t, app, before); len(added) > 0 || reloadUser(t, app, nurse).Role() != "nurse" {
		t.Errorf("added %v", added)
	}
}

// TestPatientLinkFollowsTheRole checks that an account is linked to a patient only while its role is patient.
func TestPatientLinkFollowsTheRole(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(time.Hour))
	admin := administrator(t, e, app)
	user := vigiltest.User(t, app, authz.Nurse)
	ada, bob := patient(t, app, "A-1", false), patient(t, app, "A-2", false)
	for _, step := range []struct {
		patch auth.UserPatch
		link  string
	}{
		{auth.UserPatch{Role: validate.Of("patient"), PatientID: validate.Of(ada)}, ada},
		{auth.UserPatch{FirstName: validate.Of("Ada")}, ada},
		{auth.UserPatch{PatientID: validate.Of(bob)}, bob},
		{auth.UserPatch{Role: validate.Of("ma")}, ""},
		{auth.UserPatch{Role: validate.Of("patient")}, ""},
		{auth.UserPatch{PatientID: validate.Of(bob)}, bob},
		{auth.UserPatch{PatientID: null()}, ""},
	} {
		changed, err := e.UpdateUser(t.Context(), app, admin, user.Id, step.patch, origin, clock)
		if err != nil || changed.PatientID() != step.link || reloadUser(t, app, user).PatientID() != step.link {
			t.Errorf("linked to %q, want %q, %v", reloadUser(t, app, user).PatientID(), step.link, err)
		}
	}
}

func TestOwnAccount(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	me, _ := signedIn(t, e, app, user, clock)
	changed, err := e.UpdateOwn(app, me, auth.OwnPatch{TimeZone: validate.Of("Europe/Paris")}, origin, clock)
	if err != nil || changed.TimeZone() != "Europe/Paris" || changed.Phone() != "" {
		t.Errorf("%s %s, %v", changed.TimeZone(), changed.Phone(), err)
	}
	_, err = e.UpdateOwn(app, me, auth.OwnPatch{TimeZone: validate.Of("Paris"), Phone: validate.Of("x")}, origin, clock)
	if got := wrongFields(err); got != "phone time_zone" {
		t.Errorf("wrong are %s", got)
	}
	if _, err := e.UpdateOwn(app, me, auth.OwnPatch{TimeZone: validate.Of("Europe/Paris")}, origin, clock); err != nil {
		t.Error(err)
	}
	if got := recorded(t, app, user); got != "user.update[time_zone]" {
		t.Errorf("recorded %s", got)
	}
}

// TestLastAdministratorStays checks that administrators cannot remove their own role or account, or the last active administrator.
func TestLastAdministratorStays(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(time.Hour))
	me := administrator(t, e, app)
	other := vigiltest.User(t, app, authz.Admin)
	vigiltest.User(t, app, authz.Admin, vigiltest.Inactive())
	away := auth.UserPatch{Role: validate.Of("clinical_manager")}
	_, err := e.Deactivate(app, me, me.RecordID, origin, clock)
	wantCode(t, "taking oneself away", err, "invalid_state")
	_, err = e.UpdateUser(t.Context(), app, me, me.RecordID, away, origin, clock)
	wantCode(t, "taking one's own role", err, "invalid_state")
	_, err = e.UpdateUser(t.Context(), app, me, me.RecordID, auth.UserPatch{Role: validate.Of("admin"), FirstName: validate.Of("Still")}, origin, clock)
	wantCode(t, "staying", err, "")
	_, err = e.UpdateUser(t.Context(), app, me, other.Id, away, origin, clock)
	wantCode(t, "another's role", err, "")
	// The caller may have lost the role since: then the remaining administrator is the last.
	them, _ := signedIn(t, e, app, other, clock)
	_, err = e.Deactivate(app, them, me.RecordID, origin, clock)
	wantCode(t, "taking the last away", err, "invalid_state")
	_, err = e.UpdateUser(t.Context(), app, them, me.RecordID, away, origin, clock)
	wantCode(t, "taking the last one's role", err, "invalid_state")
}

// TestAdministratorsDeactivateEachOther: of two administrators who deactivate each other concurrently, one remains.
func TestAdministratorsDeactivateEachOther(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	one, two := administrator(t, e, app), administrator(t, e, app)
	results := make([]error, 2)
	var both sync.WaitGroup
	for i, pair := range [][2]auth.Caller{{one, two}, {two, one}} {
		both.Go(func() { _, results[i] = e.Deactivate(app, pair[0], pair[1].RecordID, origin, clock) })
	}
	both.Wait()
	codes := []string{code(results[0]), code(results[1])}
	slices.Sort(codes)
	var active int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM users WHERE role = 'admin' AND is_active").Row(&active); err != nil {
		t.Fatal(err)
	}
	if active != 1 || !slices.Equal(codes, []string{"", "invalid_state"}) {
		t.Errorf("%d are left, codes %v", active, codes)
	}
}

func TestDeactivation(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	admin := administrator(t, e, app)
	nurse := vigiltest.User(t, app, authz.Nurse)
	_, session := signedIn(t, e, app, nurse, clock)
	pushToken(t, app, nurse, "phone", 1)
	_, err := e.Activate(app, admin, nurse.Id, origin, clock)
	wantCode(t, "letting in who is in", err, "invalid_state")
	off, err := e.Deactivate(app, admin, nurse.Id, origin, clock)
	if err != nil || off.Active() {
		t.Fatal(err)
	}
	_, err = e.Authenticate(app, session.Access, clock)
	wantCode(t, "the access token", err, "token_invalid")
	_, err = refresh(e, app, session.Refresh, clock)
	wantCode(t, "the refresh token", err, "token_revoked")
	if got := inactiveDevices(t, app, nurse); got != "[phone]" {
		t.Errorf("silent are %s", got)
	}
	_, err = e.Deactivate(app, admin, nurse.Id, origin, clock)
	wantCode(t, "again", err, "invalid_state")
	wantCode(t, "a link to set a password", e.SendReset(app, admin, nurse.Id, origin, clock), "invalid_state")
	on, err := e.Activate(app, admin, nurse.Id, origin, clock)
	if err != nil || !on.Active() {
		t.Fatal(err)
	}
	_, err = e.Authenticate(app, session.Access, clock)
	wantCode(t, "the access token of before", err, "token_invalid")
	if got := loginCode(t, e, app, nurse, vigiltest.Password, "", clock); got != "" {
		t.Errorf("signing in: %s", got)
	}
	if got := recorded(t, app, nurse); got != "user.deactivate[] user.activate[]" {
		t.Errorf("recorded %s", got)
	}
}

// TestUnlock checks that an unlock clears failed sign-ins and wrong proofs of one user.
func TestUnlock(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	admin := administrator(t, e, app)
	nurse, other := vigiltest.User(t, app, authz.Nurse), vigiltest.User(t, app, authz.Nurse)
	caller, _ := signedIn(t, e, app, nurse, clock)
	for range 5 {
		loginCode(t, e, app, nurse, "wrong", "", clock)
		loginCode(t, e, app, other, "wrong", "", clock)
		_ = e.ChangePassword(t.Context(), app, caller, passwordBody("wrong", "Next-Lantern-41"), origin, clock)
	}
	locks, err := e.LockoutEnds(app, []*collections.User{nurse, other, vigiltest.User(t, app, authz.MA)}, clock)
	until := clock.Add(30 * time.Minute)
	if err != nil || len(locks) != 2 || !locks[nurse.Id].Equal(until) || !locks[other.Id].Equal(until) {
		t.Errorf("locked are %v, %v", locks, err)
	}
	if locks, err = e.LockoutEnds(app, []*collections.User{nurse}, until); err != nil || len(locks) != 0 {
		t.Errorf("at the end of the lock %v, %v", locks, err)
	}
	change := func() string {
		return code(e.ChangePassword(t.Context(), app, caller, passwordBody(vigiltest.Password, "Next-Lantern-41"), origin, clock))
	}
	if got := change(); got != "throttled" {
		t.Errorf("before: %s", got)
	}
	if err := e.Unlock(app, admin, nurse.Id, origin, clock); err != nil {
		t.Fatal(err)
	}
	if got := change(); got != "" {
		t.Errorf("the proof after it: %s", got)
	}
	if got := loginCode(t, e, app, nurse, "Next-Lantern-41", "", clock); got != "" {
		t.Errorf("the sign-in after it: %s", got)
	}
	if got := loginCode(t, e, app, other, vigiltest.Password, "", clock); got != "account_locked" {
		t.Errorf("the other's sign-in: %s", got)
	}
	wantCode(t, "nobody", e.Unlock(app, admin, "nobody", origin, clock), "not_found")
}

func TestEndSessions(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	admin := administrator(t, e, app)
	nurse := vigiltest.User(t, app, authz.Nurse)
	_, one := signedIn(t, e, app, nurse, clock)
	two := login(t, e, app, nurse, clock)
	if err := e.EndSessions(app, admin, nurse.Id, origin, clock); err != nil {
		t.Fatal(err)
	}
	for _, session := range []auth.Session{one, two} {
		_, err := e.Authenticate(app, session.Access, clock)
		wantCode(t, "access", err, "token_invalid")
		_, err = refresh(e, app, session.Refresh, clock)
		wantCode(t, "refresh", err, "token_revoked")
	}
	entry, err := app.FindFirstRecordByData(collections.AuditLog, "event", "auth.logout")
	if err != nil {
		t.Fatal(err)
	}
	if changes := fmt.Sprint(entry.Get("changes")); changes != `{"sign_ins":{"old":2,"new":0}}` {
		t.Errorf("recorded %s", changes)
	}
	if _, err := e.Authenticate(app, login(t, e, app, nurse, clock).Access, clock); err != nil {
		t.Errorf("signing in again: %v", err)
	}
}

// TestUsers checks every ordering, page and search.
func TestUsers(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, person := range []struct {
		first, last, email string
		role               authz.Role
		made, seen         int // hours from the clock
	}{
		{"Zoë", "Adams", "c@vigil.test", authz.Nurse, 3, 1},
		{"Ada", "zimmer", "a@vigil.test", authz.Admin, 1, 2},
		{"Ben", "Adams", "d@vigil.test", authz.MA, 2, 0},
		{"Mia", "Moss", "b@other.test", authz.Provider, 4, 3},
	} {
		options := []vigiltest.UserOption{
			vigiltest.Email(person.email), vigiltest.With("first_name", person.first), vigiltest.With("last_name", person.last),
			vigiltest.With("created_at", collections.FormatInstant(clock.Add(time.Duration(person.made)*time.Hour))),
		}
		if person.seen > 0 {
			options = append(options, vigiltest.With("last_login_at", collections.FormatInstant(clock.Add(time.Duration(person.seen)*time.Hour))))
		}
		vigiltest.User(t, app, person.role, options...)
	}
	list := func(q auth.UserQuery) string {
		page, total, unreadable, err := auth.Users(app, q)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, user := range page {
			text += user.Email()[:1]
		}
		return fmt.Sprintf("%s %d %d", text, total, unreadable)
	}
	for order, want := range map[string]string{
		"last_name": "dcba", "email": "abcd", "role": "adcb", "created_at": "adcb", "last_login": "dcab",
	} {
		if !slices.Contains(auth.UserOrders, order) || !slices.Contains(auth.UserOrders, "-"+order) {
			t.Errorf("no order %s", order)
		}
		if got := list(auth.UserQuery{Ordering: order, Limit: 9}); got != want+" 4 0" {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
		turned := []rune(want)
		slices.Reverse(turned)
		if got := list(auth.UserQuery{Ordering: "-" + order, Limit: 9}); got != string(turned)+" 4 0" {
			t.Errorf("by -%s: %s", order, got)
		}
	}
	if got := list(auth.UserQuery{Ordering: auth.UserOrders[0], Limit: 9}); got != list(auth.UserQuery{Ordering: "last_name", Limit: 9}) {
		t.Errorf("the default order is %s", got)
	}
	active := false
	for name, test := range map[string]struct {
		query auth.UserQuery
		want  string
	}{
		"first page":            {auth.UserQuery{Limit: 3}, "dcb 4 0"},
		"second page":           {auth.UserQuery{Offset: 3, Limit: 3}, "a 4 0"},
		"beyond":                {auth.UserQuery{Offset: 9, Limit: 3}, " 4 0"},
		"part of a name":        {auth.UserQuery{Search: "ADAM", Limit: 9}, "dc 2 0"},
		"last name first":       {auth.UserQuery{Search: "Zimmer Ada", Limit: 9}, "a 1 0"},
		"first name first":      {auth.UserQuery{Search: "ada zimmer", Limit: 9}, "a 1 0"},
		"name and address":      {auth.UserQuery{Search: "mia other.test", Limit: 9}, "b 1 0"},
		"one word is nobody's":  {auth.UserQuery{Search: "ada nobody", Limit: 9}, " 0 0"},
		"across name and mail":  {auth.UserQuery{Search: "zimmera@", Limit: 9}, " 0 0"},
		"another script's case": {auth.UserQuery{Search: "ZOË", Limit: 9}, "c 1 0"},
		"a role":                {auth.UserQuery{Role: "ma", Limit: 9}, "d 1 0"},
		"inactive":              {auth.UserQuery{Active: &active, Limit: 9}, " 0 0"},
	} {
		if got := list(test.query); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	// An unreadable account matches every search, because its name is unknown.
	if _, err := app.NonconcurrentDB().NewQuery(`UPDATE users SET first_name = 'v1:test:AAAA:BBBB' WHERE email = {:email}`).
		Bind(dbx.Params{"email": "c@vigil.test"}).Execute(); err != nil {
		t.Fatal(err)
	}
	if got := list(auth.UserQuery{Search: "moss", Limit: 9}); got != "b 2 1" {
		t.Errorf("with one that cannot be read: %s", got)
	}
}

// TestReauthenticationOfAdministrators checks that an access token alone makes no administrator, changes no role and turns off no second factor of
// others, and that the own second factor is not turned off without both factors.
func TestReauthenticationOfAdministrators(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	admin := administrator(t, e, app)
	nurse := vigiltest.User(t, app, authz.Nurse)
	register := func(role string, password validate.String) error {
		_, err := e.Register(t.Context(), app, admin, auth.RegisterBody{
			Email: validate.Of(collections.NewUUID() + "@practice.test"), Password: validate.Of("Correct-Horse-42"), FirstName: validate.Of("Ada"), LastName: validate.Of("Byron"),
			Role: validate.Of(role), CurrentPassword: password,
		}, origin, clock)
		return err
	}
	update := func(patch auth.UserPatch, password validate.String) error {
		patch.CurrentPassword = password
		_, err := e.UpdateUser(t.Context(), app, admin, nurse.Id, patch, origin, clock)
		return err
	}
	reset := func(id string, password validate.String) error {
		return e.ResetTwoFactor(t.Context(), app, admin, id, auth.CurrentPasswordBody{CurrentPassword: password}, origin, clock)
	}
	var none validate.String
	right, wrong := validate.Of(vigiltest.Password), validate.Of("Wrong-Horse-42!")
	wantCode(t, "a nurse without a password", register("nurse", none), "")
	wantCode(t, "the same role", update(auth.UserPatch{Role: validate.Of("nurse"), FirstName: validate.Of("Flo")}, none), "")
	for name, step := range map[string]func(password validate.String) error{
		"an administrator": func(p validate.String) error { return register("admin", p) },
		"a new role":       func(p validate.String) error { return update(auth.UserPatch{Role: validate.Of("provider")}, p) },
	} {
		wantCode(t, name+" without the password", step(none), "reauthentication_required")
		wantCode(t, name+" with a wrong one", step(wrong), "authentication_failed")
		wantCode(t, name, step(right), "")
	}
	wantCode(t, "another's factor without the password", reset(nurse.Id, none), "reauthentication_required")
	wantCode(t, "another's factor", reset(nurse.Id, right), "invalid_state") // it is off
	wantCode(t, "the own factor", reset(admin.RecordID, right), "invalid_state")
}
