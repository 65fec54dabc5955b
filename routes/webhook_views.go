package routes

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/routes/web"
)

// WebhookViews shows the receivers of webhooks what the endpoints show clients.
type WebhookViews struct {
	Zone  *time.Location // the practice's
	Clock func() time.Time
}

var _ webhooks.Views = WebhookViews{}

// objectViews are how each kind of object is shown, by its id in the API; nil for one that is not there.
var objectViews = map[string]func(v WebhookViews, app core.App, id string) (any, error){
	collections.ChangeObservation: WebhookViews.observation,
	collections.ChangeAlert: shown(collections.AlertsByID, func(app core.App, page []*collections.Alert) ([]alertView, error) {
		return viewAlerts(access.Client)(app, page)
	}),
	collections.ChangeEscalation:   shown(collections.EscalationsByID, viewEscalations),
	collections.ChangePatient:      WebhookViews.patient,
	collections.ChangeDevice:       WebhookViews.device,
	collections.ChangeTransmission: foundBy(collections.FindTransmission, named(viewTransmission)),
	collections.ChangeClaim:        foundBy(collections.FindBillingEntry, viewEntries),
}

// Object implements [webhooks.Views]. What cannot be read is an error: it is told once it can be.
func (v WebhookViews) Object(app core.App, kind, id string) (any, error) {
	show, known := objectViews[kind]
	if !known {
		return nil, nil
	}
	view, err := show(v, app, id)
	if collections.Missing(err) {
		return nil, nil
	}
	return view, err
}

// numberID is the record id of a public number.
func numberID(id string) string {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return collections.NumberID(n)
	}
	return id
}

// shown shows a record of a numbered collection.
func shown[R ofPatients, V any](find func(core.App, []string) ([]R, error), view func(core.App, []R) ([]V, error)) func(WebhookViews, core.App, string) (any, error) {
	return func(_ WebhookViews, app core.App, id string) (any, error) {
		found, err := find(app, []string{numberID(id)})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return whenPresent(app, found[0], view)
	}
}

// foundBy shows a record whose id is the API's.
func foundBy[R ofPatients, V any](find func(core.App, string) (R, error), view func(core.App, []R) ([]V, error)) func(WebhookViews, core.App, string) (any, error) {
	return func(_ WebhookViews, app core.App, id string) (any, error) {
		found, err := find(app, id)
		if err != nil {
			return nil, err
		}
		return whenPresent(app, found, view)
	}
}

// whenPresent shows a record whose patient is not deleted.
func whenPresent[R ofPatients, V any](app core.App, record R, view func(core.App, []R) ([]V, error)) (any, error) {
	if _, err := collections.FindPatient(app, record.PatientID()); err != nil {
		return nil, err
	}
	if err := collections.Readable(record.ProxyRecord()); err != nil {
		return nil, err
	}
	views, err := view(app, []R{record})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

func (WebhookViews) observation(app core.App, id string) (any, error) {
	record, err := collections.FindObservation(app, id)
	if err != nil {
		return nil, err
	}
	o := observations.FromRecord(record)
	if _, err := collections.FindPatient(app, o.PatientID); err != nil {
		return nil, err
	}
	if err := collections.Readable(record); err != nil {
		return nil, err
	}
	raised, err := collections.AlertsOfObservations(app, id)
	return viewObservation(o, raisedFrom(raised[id]), access.Client), err
}

func (v WebhookViews) patient(app core.App, id string) (any, error) {
	p, err := collections.FindPatient(app, id)
	if err != nil {
		return nil, err
	}
	if err := collections.Readable(p.ProxyRecord()); err != nil {
		return nil, err
	}
	a := &api{Engines: Engines{Options: web.Options{Zone: v.Zone}}}
	return a.viewPatient(&web.Call{App: app, Now: v.Clock(), Caller: auth.Caller{Role: access.Client}}, p)
}

func (WebhookViews) device(app core.App, id string) (any, error) {
	device, err := collections.FindDevice(app, id)
	if err != nil {
		return nil, err
	}
	return viewDevice(device), nil
}
