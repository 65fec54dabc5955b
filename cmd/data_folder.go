package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks/schemadrift"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
	"github.com/vigilhealth/vigil/internal/sqlite"
	_ "github.com/vigilhealth/vigil/migrations" // the schema
)

// Sizes of the connection pools. Few connections with a page cache of 8 MB each read faster than many, in a fifth of the memory; there is
// one writer in any case.
const (
	readConnections = 8
	logConnections  = 4
)

// NewApp is PocketBase on the data folder; nothing is opened yet.
func NewApp(dir string, settings config.Settings) (core.App, error) {
	if err := shareSettingsKey(settings); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // PocketBase would let everybody on the machine look inside
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	app := core.NewBaseApp(core.BaseAppConfig{
		DataDir: dir, EncryptionEnv: settingsKeyName, QueryTimeout: 30 * time.Second,
		DataMaxOpenConns: readConnections, DataMaxIdleConns: readConnections, AuxMaxOpenConns: logConnections, AuxMaxIdleConns: logConnections,
		DBConnect: sqlite.Connect,
	})
	app.OnBootstrap().Unbind(reloadWhenTold, collectionsAgain)
	return app, nil
}

// reloadWhenTold is PocketBase's hook that reads settings and collections anew when a file in the data folder says that another process has changed
// them. Ours count from the start, when they are checked: whoever can write the folder would change the rules of a running service.
const reloadWhenTold = "__pbNotifyWatcherSystemHook__"

// collectionsAgain is PocketBase's hook that reads all collections a second time at the start.
const collectionsAgain = "__pbCollectionSystemHook__"

// folder is the app on the data folder that a command beside the service works on; nothing is opened yet.
func (p *Program) folder() (core.App, config.Settings, error) {
	settings, err := p.settings()
	if err != nil {
		return nil, settings, err
	}
	settings = settings.ServedAt("http://" + defaultAddr)
	app, err := NewApp(p.dir, settings)
	return app, settings, err
}

// openService opens the data folder, with the engines of the service, which may be running meanwhile.
func (p *Program) openService(cmd *cobra.Command) (*Service, error) {
	app, settings, err := p.folder()
	if err != nil {
		return nil, err
	}
	sealer, err := Open(app, settings)
	if err != nil {
		return nil, err
	}
	return p.NewService(app, sealer, settings, newLog(cmd.ErrOrStderr(), settings.SlogLevel()), clockwork.NewRealClock())
}

// needsDatabase fails where there is none yet: a mistyped --dir is not to become an empty practice in which all is well.
func (p *Program) needsDatabase() error {
	if _, err := os.Stat(filepath.Join(p.dir, "data.db")); err != nil {
		return fmt.Errorf("there is no database in %s", p.dir)
	}
	return nil
}

// shareSettingsKey puts the key of PocketBase's settings row where PocketBase reads it, the environment; ours may have come from a file.
func shareSettingsKey(settings config.Settings) error {
	if err := os.Setenv(settingsKeyName, settings.SettingsKey.Reveal()); err != nil {
		return fmt.Errorf("hand over the settings key: %w", err)
	}
	return nil
}

const settingsKeyName = config.Prefix + "SETTINGS_KEY"

// Open is openAs for a command that works on the data folder beside the service.
func Open(app core.App, settings config.Settings) (*phi.Sealer, error) {
	return openAs(app, settings, beside)
}

// admission lets a process with a ring have the data folder. It calls migrate, which changes the schema, once nothing speaks against it.
type admission func(app core.App, ring *phi.KeyRing, migrate func() error) error

// openAs bootstraps the app, brings the schema up to date and gives the encrypted fields their keys. It fails when stored values need keys that
// are not in the ring, when who comes in may not seal there, or when the audit trail has lost its guards.
func openAs(app core.App, settings config.Settings, admit admission) (*phi.Sealer, error) {
	if err := settings.RequireEncryption(); err != nil {
		return nil, err
	}
	if !app.IsBootstrapped() {
		if err := bootstrap(app); err != nil {
			return nil, err
		}
	}
	var outdated error // which is no matter of the keys
	sealer, err := unlock(app, settings, func(app core.App, ring *phi.KeyRing) error {
		return admit(app, ring, func() error { outdated = migrate(app); return outdated })
	})
	if err := cmp.Or(outdated, err); err != nil {
		return nil, err
	}
	if err := collections.CheckAuditTriggers(app); err != nil {
		return nil, err
	}
	return sealer, audit.Begin(app)
}

// OpenToServe is openAs for the service, whose settings PocketBase's own are to follow: a command beside it may have been given others.
func OpenToServe(app core.App, settings config.Settings) (*phi.Sealer, error) {
	sealer, err := openAs(app, settings, serving)
	if err != nil {
		return nil, err
	}
	return sealer, assertSettings(app, settings)
}

// migrate brings the schema up to date.
func migrate(app core.App) error {
	if err := sqlite.SortOnDisk(app.NonconcurrentDB(), app.RunAllMigrations); err != nil {
		return fmt.Errorf("bring the schema up to date: %w", err)
	}
	if err := collections.SetPlannerStatistics(app); err != nil {
		return err
	}
	return collections.InstallChangeTriggers(app)
}

// unlock gives the encrypted fields and the audit trail their keys, once the ring is admitted.
func unlock(app core.App, settings config.Settings, admit func(core.App, *phi.KeyRing) error) (*phi.Sealer, error) {
	if err := settings.RequireEncryption(); err != nil {
		return nil, err
	}
	sealer, err := newSealer(app, settings, admit)
	if err != nil {
		return nil, fmt.Errorf("VIGIL_ENCRYPTION_KEYS: %w", err)
	}
	collections.UseSealer(sealer)
	return sealer, nil
}

func newSealer(app core.App, settings config.Settings, admit func(core.App, *phi.KeyRing) error) (*phi.Sealer, error) {
	ring, err := phi.NewKeyRing(settings.EncryptionKeys...)
	if err != nil {
		return nil, err
	}
	if err := admit(app, ring); err != nil {
		return nil, err
	}
	key, err := collections.LoadIndexKey(app, ring)
	if err != nil {
		return nil, err
	}
	return phi.NewSealer(ring, key)
}

// serving admits the service, which says which keys it holds until it lets go of the folder.
func serving(app core.App, ring *phi.KeyRing, migrate func() error) error {
	if err := keyring.Admit(app, ring, migrate); err != nil {
		return err
	}
	app.OnBootstrapClear().BindFunc(func(e *core.BootstrapEvent) error { return errors.Join(keyring.Withdraw(app), e.Next()) })
	return nil
}

// beside admits a command, until it lets go of the folder. A service that is just starting gets a moment to say which keys it holds.
func beside(app core.App, ring *phi.KeyRing, migrate func() error) error {
	release, err := admitBeside(app, ring, migrate)
	if err == nil {
		app.OnBootstrapClear().BindFunc(func(e *core.BootstrapEvent) error { return errors.Join(e.Next(), release()) })
	}
	return err
}

func admitBeside(app core.App, ring *phi.KeyRing, migrate func() error) (release func() error, err error) {
	for range 10 {
		if release, err = keyring.AdmitBeside(app, ring, migrate); !errors.Is(err, keyring.ErrServiceSilent) {
			break
		}
		time.Sleep(serviceStarts / 10)
	}
	return release, err
}

// serviceStarts is how long a command waits for a service that has the folder and has not said yet which keys it holds.
const serviceStarts = 5 * time.Second

// bootstrap opens the data folder, and names the key that does not fit. Until the app lets go of it, no backup can be
// restored into the folder.
func bootstrap(app core.App) error {
	release, err := backup.Hold(app.DataDir())
	if err != nil {
		return err
	}
	app.OnBootstrapClear().BindFunc(func(e *core.BootstrapEvent) error { return errors.Join(e.Next(), release()) })
	if err := checkSchema(app.DataDir()); err != nil {
		return errors.Join(err, release())
	}
	err = app.Bootstrap()
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "cipher: "): // from opening PocketBase's settings row
		return fmt.Errorf("%s is not the key of this data folder: %w", settingsKeyName, err)
	case strings.Contains(err.Error(), "missing encryption key"): // PocketBase found that row sealed
		return fmt.Errorf("%s is not set, and the settings in this data folder are sealed with it", settingsKeyName)
	default:
		return fmt.Errorf("open the data folder: %w", err)
	}
}

// tenfold is how much coarser PocketBase's own limit of the realtime routes is than ours, since it counts by address.
const tenfold = 10

// assertSettings writes PocketBase's own settings as ours demand, at every start: a superuser can change them in between.
func assertSettings(app core.App, settings config.Settings) error {
	s := app.Settings()
	s.Meta.AppName, s.Meta.AppURL, s.Meta.HideControls = "Vigil", settings.PublicURL, true
	s.Logs.MaxDays, s.Logs.MinLevel, s.Logs.LogIP, s.Logs.LogAuthId = 7, 4, false, false
	s.Batch.Enabled = false
	s.Backups, s.S3 = core.BackupsConfig{}, core.S3Config{} // PocketBase's own backup is an open zip; there are no files
	s.TrustedProxy.Headers = settings.TrustedProxyHeaders
	s.RateLimits.Enabled = true
	s.RateLimits.Rules = []core.RateLimitRule{{Label: "*:auth", MaxRequests: 10, Duration: 60}}
	if limit := settings.RateLimits.Realtime; !limit.Unlimited() { // ours counts by user; this is for what never comes that far
		s.RateLimits.Rules = append(s.RateLimits.Rules,
			core.RateLimitRule{Label: "/api/realtime", MaxRequests: tenfold * limit.Limit, Duration: int64(limit.Window.Seconds())})
	}
	s.SMTP.Enabled = settings.SMTP.Configured()
	if s.SMTP.Enabled {
		if from, err := mail.ParseAddress(settings.SMTP.From); err == nil {
			s.Meta.SenderName, s.Meta.SenderAddress = cmp.Or(from.Name, s.Meta.AppName), from.Address
		}
		s.SMTP.Host, s.SMTP.Port, s.SMTP.TLS = settings.SMTP.Host, settings.SMTP.Port, settings.SMTP.TLS
		s.SMTP.Username, s.SMTP.Password = settings.SMTP.Username, settings.SMTP.Password.Reveal()
	}
	if err := app.Save(s); err != nil {
		return fmt.Errorf("store PocketBase's settings: %w", err)
	}
	return nil
}

// localURL is where a listener on addr is reached from this machine.
func localURL(scheme string, addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// inspect looks for what somebody did to the file while nobody was serving it: a trail that does not end as it should is told; rules and
// options of PocketBase's collections that are not ours are told and put right before a door opens.
func inspect(app core.App, log *slog.Logger, now time.Time) error {
	if err := audit.CheckEnd(app); err != nil { // it is told, and stops nobody's care
		log.Error("audit trail", slog.Any("error", err))
	}
	found, err := schemadrift.PutRight(app, now)
	for _, one := range found {
		log.Error("a rule of PocketBase's was changed in the file and is put right", slog.String("collection", one.Collection), slog.String("what", one.What))
	}
	if err != nil {
		return fmt.Errorf("what PocketBase's collections allow: %w", err)
	}
	return nil
}
