package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EMRCapability is what is known of one EMR.
type EMRCapability struct {
	Offer       string // what its CapabilityStatement states about Observations, as JSON; "" before the first readable one
	ReadAt      time.Time
	HasAccepted bool // it has taken an Observation
}

// FindEMRCapability returns what is known of the EMR with an audience, zero if nothing is. Before anything is known of any EMR, the deliveries show
// whether the one in use has taken an Observation.
func FindEMRCapability(app core.App, audience string) (c EMRCapability, err error) {
	var row struct {
		Offer       string `db:"offer"`
		ReadAt      string `db:"read_at"`
		HasAccepted bool   `db:"has_accepted"`
	}
	err = app.DB().NewQuery(`SELECT offer, read_at, has_accepted FROM emr_capabilities WHERE audience = {:audience}`).
		Bind(dbx.Params{"audience": audience}).One(&row)
	if IsNotFound(err) {
		c.HasAccepted, err = queryValue[bool](app, "find a delivered observation", `SELECT NOT EXISTS (SELECT 1 FROM emr_capabilities)
			AND EXISTS (SELECT 1 FROM transmissions WHERE status = 'transmitted' AND `+isReading+` AND sent_hash != '`+InDocument+`')`, nil)
		return c, err
	}
	return EMRCapability{Offer: row.Offer, ReadAt: ParseInstant(row.ReadAt), HasAccepted: row.HasAccepted}, wrap(err, "find EMR capabilities")
}

// StoreEMRCapability replaces what is known of the EMR with an audience.
func StoreEMRCapability(tx core.App, audience string, c EMRCapability) error {
	r, err := tx.FindFirstRecordByData(EMRCapabilities, "audience", audience)
	if IsNotFound(err) {
		r, err = NewRecord(tx, EMRCapabilities)
	}
	if err != nil {
		return wrap(err, "find EMR capabilities")
	}
	r.Set("audience", audience)
	r.Set("offer", c.Offer)
	r.Set("read_at", FormatInstant(c.ReadAt))
	r.Set("has_accepted", c.HasAccepted)
	return wrap(tx.Save(r), "store EMR capabilities")
}

// HasEMRCopy reports whether a delivery of the patient with an external id has the EMR's copy with an id.
func HasEMRCopy(app core.App, externalID, emrID string) (bool, error) {
	return queryValue[bool](app, "find the delivery of a copy", `SELECT EXISTS (SELECT 1 FROM transmissions
		WHERE patient IN (SELECT id FROM patients WHERE external_id = {:patient}) AND emr_resource_id = {:id})`,
		dbx.Params{"patient": externalID, "id": emrID})
}
