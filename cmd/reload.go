package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// logFile is a log destination that can be reopened under its name after a log rotation has renamed the file.
type logFile struct {
	path string
	lock sync.Mutex
	file *os.File
}

func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

// Write implements [io.Writer].
func (l *logFile) Write(line []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.file.Write(line)
}

// reopen switches to the file that has the name now. If it cannot be opened, the current file stays in use.
func (l *logFile) reopen() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open VIGIL_LOG_FILE: %w", err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.file != nil {
		_ = l.file.Close() // every line was written
	}
	l.file = file
	return nil
}

// hangupSignals returns the channel of SIGHUP signals, which reload the certificate and log file. From this call on, SIGHUP no longer ends the process.
func hangupSignals() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// reloadOnHangup reloads the certificate and log file on SIGHUP until ctx ends.
// Source: docs/decisions/operating.md, "Signals".
func (s *Service) reloadOnHangup(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hangups:
			s.reload()
		}
	}
}

func (s *Service) reload() {
	if s.logFile != nil {
		if err := s.logFile.reopen(); err != nil {
			s.log.Error("log file not reopened: the service keeps writing to the previous file", slog.Any("error", err))
		}
	}
	if s.certificates != nil {
		if err := s.certificates.reload(s.now()); err != nil {
			s.log.Error("certificate not reloaded: the service keeps serving the previous one", slog.Any("error", err))
			return
		}
		s.log.Info("reloaded", slog.Time("certificate_not_after", s.certificates.notAfter()))
		return
	}
	s.log.Info("reloaded")
}

// startupAttributes returns the log attributes that describe the configuration to the operator at startup. It contains no secrets.
func (s *Service) startupAttributes(address string) []any {
	on := func(is bool) string {
		if is {
			return "on"
		}
		return "off"
	}
	c := s.settings
	backups := "off"
	if c.Backup.Keep > 0 {
		backups = "nightly, in " + backupFolder(s.app.DataDir(), c)
		if c.Backup.S3Bucket != "" {
			backups = "nightly, in bucket " + c.Backup.S3Bucket
		}
	}
	line := []any{
		slog.String("address", address), slog.String("version", s.program.Version), slog.String("environment", string(c.Environment)),
		slog.String("public_url", c.PublicURL), slog.String("data", s.app.DataDir()), slog.String("time_zone", c.PracticeTimeZone),
		slog.String("tls", on(s.certificates != nil)), slog.String("emr", on(s.emr.Configured())), slog.String("mail", on(c.SMTP.Configured())),
		slog.String("gateway", on(c.Gateway.Configured())), slog.String("push", on(c.VAPID.Configured())), slog.String("backups", backups),
		slog.String("metrics", c.MetricsAddr),
	}
	if from := s.auth.TwoFactorRequiredFrom(); !from.IsZero() {
		line = append(line, slog.Time("second_factor_required_from", from))
	}
	if s.certificates != nil {
		line = append(line, slog.Time("certificate_not_after", s.certificates.notAfter()))
	}
	return line
}
