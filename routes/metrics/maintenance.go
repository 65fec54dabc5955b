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
	diskFree            = newDesc("vigil_disk_free_bytes", "Free bytes on the disk of the data folder.")
	walSize             = newDesc("vigil_database_log_bytes", "Size of the database's write-ahead log, which grows during long reads.")
	databaseDamaged     = newDesc("vigil_database_damaged", "1 if a check or a failed statement found the database damaged; 0 again after a full check finds no damage.")
	leaseHeld           = newDesc("vigil_lease_held", "1 if this process holds the practice's lease and may write. Absent without a lease.")
	replicaAge          = newDesc("vigil_replica_age_seconds", "Time since Litestream last uploaded the database, or since the start of the service if unknown. Absent without a replica.")
	backupTakenAt       = newDesc("vigil_backup_last_success_timestamp_seconds", "Time of the last backup, by the job or by command; 0 for never.")
	backupVerifiedAt    = newDesc("vigil_backup_last_verified_timestamp_seconds", "Time of the last successful verification of a backup, by the job or by command; 0 for never.")
	warehouseExportedAt = newDesc("vigil_warehouse_last_success_timestamp_seconds", "Start of the last complete warehouse export, by the job or by command; 0 for never. Absent if no export is configured.")
	certificateExpiry   = newDesc("vigil_certificate_not_after_timestamp_seconds", "Expiry of the TLS certificate that the service presents; 0 without one.")
)

// collectMaintenance collects disk, backup and certificate metrics. Backup times are present from the start, 0 for never, so that a missing backup
// is as visible as an old one.
func (s sourceCollector) collectMaintenance(gauge func(*prometheus.Desc, float64, ...string)) {
	taken, proven, err := collections.BackupTimes(s.App)
	if err != nil {
		s.Log.Warn("metrics could not read backup times and leave out their gauges", slog.Any("error", err))
	} else {
		gauge(backupTakenAt, secondsOrZero(taken))
		gauge(backupVerifiedAt, secondsOrZero(proven))
	}
	if s.LastExport != nil {
		at, known, err := s.LastExport()
		if err != nil {
			s.Log.Warn("metrics could not read warehouse exports and leave out the gauge", slog.Any("error", err))
		} else if known { // without a configured export nothing can be late
			gauge(warehouseExportedAt, secondsOrZero(at))
		}
	}
	var ends time.Time
	if s.CertificateEnds != nil {
		ends = s.CertificateEnds()
	}
	gauge(certificateExpiry, secondsOrZero(ends))
	if log, err := os.Stat(filepath.Join(s.App.DataDir(), "data.db-wal")); err == nil {
		gauge(walSize, float64(log.Size()))
	}
	if s.ReplicaAge != nil {
		if age, configured := s.ReplicaAge(); configured {
			gauge(replicaAge, age.Seconds())
		}
	}
	if s.Damaged != nil {
		gauge(databaseDamaged, map[bool]float64{true: 1}[s.Damaged()])
	}
	if s.LeaseHeld != nil {
		gauge(leaseHeld, map[bool]float64{true: 1}[s.LeaseHeld()])
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
	return unixSeconds(at)
}

// InitJobs sets the counters of these jobs to 0, so that the first failure of a job is an increase.
func (m *Metrics) InitJobs(names []string) {
	for _, name := range names {
		m.jobRuns.WithLabelValues(name, "succeeded")
		m.jobRuns.WithLabelValues(name, "failed")
	}
}

// rejectionReasons start at 0, so that the first rejection for one of these reasons is an increase.
var rejectionReasons = []string{
	"invalid_signature", "invalid_secret", "source_not_allowed", "stale_timestamp", "webhook_not_configured", "validation_error", "service_unavailable", ingest.ReasonUnknownPatient,
	ingest.ReasonPatientMismatch, ingest.ReasonPatientInactive, ingest.ReasonUnsupportedType, ingest.ReasonConflict, ingest.ReasonDeviceMismatch,
	ingest.ReasonBeforeBirth,
}

// initCounters sets counters to 0 for all labels that are known in advance.
func (m *Metrics) initCounters() {
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
	for _, reason := range rejectionReasons {
		m.rejected.WithLabelValues(reason)
	}
	m.requests.WithLabelValues("GET", "none", "500")
}
