package emr_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// lacking returns the operations that a client lacks with the granted scopes, as "operation scope scope-of-version-2".
func lacking(t *testing.T, grant string, change ...func(*emr.Options)) (lacks []string) {
	t.Helper()
	fake := &fakeEMR{tokens: []reply{{
		status: 200, header: map[string]string{"Content-Type": "application/json"},
		body: `{"access_token":"t","token_type":"bearer","expires_in":3600` + grant + `}`,
	}}}
	client := newClient(t, fake, change...)
	if _, err := client.SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range client.MissingScopes() {
		lacks = append(lacks, m.Does+" "+m.Scope+" "+m.ScopeV2)
	}
	return lacks
}

func TestMissingScopes(t *testing.T) {
	const (
		deliver  = "deliver system/Observation.write system/Observation.c"
		lookUp   = "look_up system/Observation.read system/Observation.rs"
		update   = "update system/Observation.write system/Observation.u"
		patients = "patients system/Patient.read system/Patient.rs"
	)
	for granted, want := range map[string][]string{
		"system/Patient.read system/Observation.write system/*.write":          {lookUp}, // the default scopes
		"system/Patient.read system/Observation.read system/Observation.write": nil,
		"system/Patient.rs system/Observation.crus":                            nil,
		"system/Patient.rs system/Observation.c system/Observation.rs":         {update},
		"system/Patient.r system/Observation.cru":                              {lookUp, patients},
		"system/Patient.rs?_count=1 system/Observation.crus?category=vitals":   nil,
		"system/*.cruds":                    nil,
		"system/*.*":                        nil,
		"system/*.read":                     {deliver, update},
		"system/*.rs":                       {deliver, update},
		"system/Observation.*":              {patients},
		"user/Patient.read user/*.*":        {deliver, lookUp, update, patients},
		"system/Observation.dc":             {deliver, lookUp, update, patients}, // not a form of either version
		"system/Observations.crus openid":   {deliver, lookUp, update, patients},
		"patient/*.cruds system/Device.rs":  {deliver, lookUp, update, patients},
		"SYSTEM/*.cruds system/Patient.rs ": {deliver, lookUp, update},
	} {
		if got := lacking(t, `,"scope":"`+granted+`"`); !slices.Equal(got, want) {
			t.Errorf("%s: lacks %q, want %q", granted, got, want)
		}
	}
	if got := lacking(t, ""); !slices.Equal(got, []string{lookUp}) {
		t.Errorf("an EMR that returns no scope: %q", got)
	}
}

// An EMR that takes documents needs other scopes; one that granted less than was requested is named what is missing.
func TestMissingDocumentScopes(t *testing.T) {
	const (
		create = "deliver_documents system/DocumentReference.write system/DocumentReference.c"
		lookUp = "look_up_documents system/DocumentReference.read system/DocumentReference.rs"
		update = "update_documents system/DocumentReference.write system/DocumentReference.u"
	)
	for _, test := range []struct {
		setting emr.DeliverySetting
		granted string
		want    []string
	}{
		{emr.DeliverDocument, "system/Patient.read", []string{create, lookUp, update}},
		{emr.DeliverDocument, "system/Patient.rs system/DocumentReference.cru", []string{lookUp}},
		{emr.DeliverDocument, "system/Patient.rs system/DocumentReference.rs", []string{create, update}},
		{emr.DeliverDocument, "system/Patient.rs system/DocumentReference.crus", nil},
		{emr.DeliverBoth, "system/Patient.rs system/Observation.crus", []string{create, lookUp, update}},
		{emr.DeliverObservation, "system/Patient.rs system/Observation.crus", nil},
	} {
		if got := lacking(t, `,"scope":"`+test.granted+`"`, func(o *emr.Options) { o.Delivery = test.setting }); !slices.Equal(got, test.want) {
			t.Errorf("%s with %s: lacks %q, want %q", test.setting, test.granted, got, test.want)
		}
	}
}

// The requested scopes are those of the settings, or the defaults.
func TestRequestedScopes(t *testing.T) {
	fake := &fakeEMR{}
	client := newClient(t, fake, func(o *emr.Options) {
		o.Scopes, o.UserScopes = []string{"system/Patient.rs", "system/Observation.crus"}, []string{"user/Patient.rs"}
		o.AuthorizeURL, o.ExtraScopes = "https://emr.test/authorize", []string{"openid"}
	})
	if _, err := client.SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fake.requests("token")[0].form.Get("scope"); got != "system/Patient.rs system/Observation.crus" {
		t.Errorf("requested %q", got)
	}
	address, err := client.AuthorizationURL("s", verifier)
	if u, _ := url.Parse(address); err != nil || u.Query().Get("scope") != "user/Patient.rs openid" {
		t.Errorf("requested %s (%v)", address, err)
	}
}

// Deliveries with a person's token need that person's scopes.
func TestMissingUserScopes(t *testing.T) {
	w := newEMRServer(t)
	client := w.client(t, func(o *emr.Options) { o.ApplicationType = emr.Interactive })
	for _, connected := range []bool{false, true} {
		if connected {
			w.connect(t, client)
		}
		if got := client.MissingScopes(); len(got) != 1 || got[0] != (emr.MissingScope{Does: "look_up", Scope: "user/Observation.read", ScopeV2: "user/Observation.rs"}) {
			t.Errorf("connected %t: %+v", connected, got)
		}
	}
	if got := newClient(t, nil, func(o *emr.Options) { o.ClientID = "" }).MissingScopes(); len(got) != 4 {
		t.Errorf("without settings: %+v", got)
	}
}

// The minimal scopes of both versions permit every operation at a strict EMR. The default scopes permit all but searching.
func TestMinimalScopes(t *testing.T) {
	for _, test := range []struct {
		scopes    string
		canSearch bool
	}{
		{"system/Patient.read system/Observation.read system/Observation.write", true},
		{"system/Patient.rs system/Observation.crus", true},
		{strings.Join(emr.SystemScopes, " "), false},
	} {
		b := newSandboxTransport(t, func(o *sandbox.EMROptions) { o.StrictScopes = true })
		client := b.client(t, func(o *emr.Options) { o.Scopes = strings.Fields(test.scopes) })
		id := b.storeObservation(t, client)
		_, found, err := client.LookUpObservation(t.Context(), observationID, []byte(observationResource))
		if found != test.canSearch || (err == nil) != test.canSearch {
			t.Errorf("%s: found %v (%v)", test.scopes, found, err)
		}
		if _, err := client.UpdateObservation(t.Context(), id, retractedCopy(id), requestID, false); err != nil {
			t.Errorf("%s: %v", test.scopes, err)
		}
		if _, err := client.ReadPatient(t.Context(), "pat-1001"); err != nil {
			t.Errorf("%s: %v", test.scopes, err)
		}
		if lacks := len(client.MissingScopes()) > 0; lacks == test.canSearch {
			t.Errorf("%s: lacks %+v", test.scopes, client.MissingScopes())
		}
	}
}
