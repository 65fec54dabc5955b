package metrics

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/internal/webhooks"
)

var (
	diskFree  = describe("vigil_disk_free_bytes", "What the disk of the data folder can still take.")
	logSize   = describe("vigil_database_log_bytes", "The size of the database's write-ahead log, which grows while somebody reads for long.")
	takenAt   = describe("vigil_backup_last_success_timestamp_seconds", "When the last backup was taken, by the job or by command; 0 when never.")
	provenAt  = describe("vigil_backup_last_verified_timestamp_seconds", "When a backup was last proven to be good, by the job or by command; 0 when never.")
	shippedAt = describe("vigil_warehouse_last_success_timestamp_seconds", "When the last export for a warehouse began that wrote everything, by the job or by command; 0 when never. Absent when nothing is exported.")
	certEnds  = describe("vigil_certificate_not_after_timestamp_seconds", "Until when the TLS certificate that the service presents is valid; 0 when it presents none.")
)

// collectUpkeep tells of disk, backups and certificate. Each is there from the start, 0 for what there is not or never was: the absence of a
// backup must be as visible as its age.
func (s state) collectUpkeep(gauge func(*prometheus.Desc, float64, ...string)) {
	taken, proven, err := collections.BackupTimes(s.App)
	if err != nil {
		s.Log.Warn("backups not looked up", slog.Any("error", err))
	} else {
		gauge(takenAt, secondsOrZero(taken))
		gauge(provenAt, secondsOrZero(proven))
	}
	if s.Exported != nil {
		at, known, err := s.Exported()
		if err != nil {
			s.Log.Warn("exports for a warehouse not looked up", slog.Any("error", err))
		} else if known { // where nothing is to leave, nothing is late
			gauge(shippedAt, secondsOrZero(at))
		}
	}
	var ends time.Time
	if s.CertificateEnds != nil {
		ends = s.CertificateEnds()
	}
	gauge(certEnds, secondsOrZero(ends))
	if log, err := os.Stat(filepath.Join(s.App.DataDir(), "data.db-wal")); err == nil {
		gauge(logSize, float64(log.Size()))
	}
	if s.DiskFree == nil {
		return
	}
	if free, ok := s.DiskFree(); ok {
		gauge(diskFree, float64(free))
	}
}

func secondsOrZero(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return seconds(at)
}

// Jobs makes the counters of jobs begin at 0 for each of the names: the first failure of a job is an increase, too.
func (m *Metrics) Jobs(names []string) {
	for _, name := range names {
		m.jobRuns.WithLabelValues(name, "succeeded")
		m.jobRuns.WithLabelValues(name, "failed")
	}
}

// refusals are the reasons of which operators want to hear the first time.
var refusals = []string{
	"invalid_signature", "invalid_secret", "source_not_allowed", "stale_timestamp", "webhook_not_configured", "validation_error", "service_unavailable", ingest.ReasonUnknownPatient,
	ingest.ReasonPatientMismatch, ingest.ReasonPatientInactive, ingest.ReasonUnsupportedType, ingest.ReasonConflict, ingest.ReasonDeviceMismatch,
	ingest.ReasonBeforeBirth,
}

// beginWithNothing makes counters begin at 0 for every label that can be said beforehand.
func (m *Metrics) beginWithNothing() {
	for _, kind := range vitals.KindNames {
		for _, source := range []vitals.Source{vitals.SourceGateway, vitals.SourceAPI, vitals.SourcePortal} {
			m.readings.WithLabelValues(kind, string(source))
		}
	}
	for _, kind := range alerts.ReadingTypes {
		for _, level := range []alerts.Level{alerts.Warning, alerts.Critical} {
			m.alerts.WithLabelValues(string(level), kind)
		}
	}
	for _, outcome := range []string{"transmitted", "failed"} {
		m.delivered.WithLabelValues(outcome)
	}
	for _, status := range []string{collections.PushSent, collections.PushFailed} {
		m.pushes.WithLabelValues(status)
	}
	for _, outcome := range webhooks.Outcomes {
		m.webhooks.WithLabelValues(outcome)
	}
	for _, reason := range refusals {
		m.rejected.WithLabelValues(reason)
	}
	m.requests.WithLabelValues("GET", "none", "500")
}
