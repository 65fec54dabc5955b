package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StoreHealthSample stores how the service was at a moment; services is JSON.
func StoreHealthSample(tx core.App, status, services string, at time.Time) error {
	_, err := tx.DB().Insert(HealthSamples, dbx.Params{"sampled_at": Instant(at), "status": status, "services": services}).Execute()
	return wrap(err, "store health sample")
}

// HealthSamplesSince counts the samples since a time, and those that were down.
func HealthSamplesSince(app core.App, since time.Time) (samples, down int, err error) {
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(SUM(status = 'down'), 0) FROM health_samples WHERE sampled_at >= {:from}`).
		Bind(dbx.Params{"from": Instant(since)}).Row(&samples, &down)
	return samples, down, wrap(err, "count health samples")
}
