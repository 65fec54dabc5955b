// Package cmd is the command-line program: it reads the settings, builds the engines, registers routes, hooks and jobs, and defines the commands,
// each in a file of its name. It contains no rules of the practice.
package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// Exit statuses: success, failure with one line on standard error, wrong usage.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// usageError is a wrong command line.
type usageError struct{ error }

// Program holds the binary's embedded files and its environment.
type Program struct {
	Version string
	Pages   fs.FS // of the console
	Environ []string
	// Self is the path of the executable, for subprocesses; "" starts none.
	Self string

	dir    string
	loaded *config.Settings // read as root, before a command continues as the data folder's owner
}

// Run runs a command line and returns its exit status.
func (p *Program) Run(args []string, in io.Reader, out, errOut io.Writer) int {
	setUmask()
	p.dir = dataFolder(args)
	sqlite.SetTempDir(p.dir)
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(errOut, "vigil: %s\n", line)
		}
	}
	if _, misused := errors.AsType[usageError](err); misused || strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag") {
		fmt.Fprintln(errOut, "vigil: see vigil help")
		return exitUsage
	}
	return exitFailed
}

// dataFolder returns the value of --dir before the full command line is parsed.
func dataFolder(args []string) string {
	flags := pflag.NewFlagSet("vigil", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	dir := flags.String("dir", "pb_data", "")
	_ = flags.Parse(args) // the full parse reports errors
	return *dir
}

func (p *Program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "vigil", Short: "Remote patient monitoring for clinical practices", Version: p.Version,
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return p.becomeOwner(cmd) },
	}
	root.PersistentFlags().StringVar(&p.dir, "dir", p.dir, "data folder")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.serveCommand(), p.demoCommand(), p.adminCommand(), p.auditCommand(), p.keysCommand(), p.icd10Command(), p.feesCommand(), p.rulesCommand(), p.claimsCommand(),
		p.simulateCommand(), p.ingestionCommand(), p.transmissionsCommand(),
		p.emrSandboxCommand(), p.backupCommand(), p.superuserCommand(), p.jobsCommand(), p.checkCommand())
	root.AddCommand(p.licensesCommand(), p.fleetCommand(), p.exportCommand(), p.centerCommand(), p.ingressCommand(), p.dispatcherCommand(), p.eventsCommand())
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, topic []string) error {
			if _, rest, err := root.Find(topic); err != nil || len(rest) > 0 {
				return usageError{fmt.Errorf("there is no command %q", strings.Join(topic, " "))}
			}
			return nil
		}
	}
	return root
}

// settings returns the settings; each problem is a line of the error.
func (p *Program) settings() (config.Settings, error) {
	if p.loaded != nil {
		return *p.loaded, nil
	}
	return config.Load(p.Environ)
}

func now() time.Time { return time.Now().UTC() }

// newLog returns a logger of JSON lines. No level logs PHI, because its types do not print.
func newLog(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: inUnits}))
}

// inUnits formats durations as 1.5s instead of nanoseconds.
func inUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}

// helpOnly prints the help of a command that only has subcommands, and rejects an unknown subcommand.
func helpOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())}
	}
	return cmd.Help()
}

// noArgs rejects positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments", cmd.CommandPath())}
	}
	return nil
}

// oneArg requires exactly one argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageError{fmt.Errorf("%s takes %s", cmd.CommandPath(), what)}
		}
		return nil
	}
}

// maybeOneArg permits at most one argument.
func maybeOneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("%s takes one %s at most", cmd.CommandPath(), what)}
		}
		return nil
	}
}

// plain formats an error with field errors as one line.
func plain(err error) error {
	var refused *fault.Error
	if !errors.As(err, &refused) {
		return err
	}
	if len(refused.Fields) == 0 {
		return errors.New(refused.Detail)
	}
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(refused.Fields)) {
		parts = append(parts, field+": "+strings.Join(refused.Fields[field], " "))
	}
	return errors.New(strings.Join(parts, "; "))
}

// progress shows a progress bar on a terminal, and otherwise one line at the end.
func progress(out io.Writer, what string) func(done, total int) {
	if !isTerminal(out) {
		return func(done, total int) {
			if done == total {
				fmt.Fprintf(out, "%s: %d\n", what, total)
			}
		}
	}
	var bar *progressbar.ProgressBar
	return func(done, total int) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what),
				progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionOnCompletion(func() { fmt.Fprintln(out) }))
		}
		_ = bar.Set(done) // a bar that cannot be drawn must not stop the command
	}
}

func isTerminal(out io.Writer) bool {
	file, isFile := out.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
