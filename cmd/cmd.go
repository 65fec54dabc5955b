// Package cmd is the program above the doors: it reads the settings once, builds the engines, opens the three doors (routes, hooks, jobs) and
// offers the commands, each in the file of its name. What the practice's rules are it does not know: it only puts together.
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

// Exit statuses: done, failed with one clear line on standard error, wrong usage.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

// Program is what the binary brings along, and the environment that it runs in.
type Program struct {
	Version string
	Pages   fs.FS // the console's
	Environ []string
	// Self is the program's own file, for what it starts beside itself; "" starts nothing.
	Self string

	dir    string
	loaded *config.Settings // by who may read more of the machine than the command is to
}

// Run runs a command line and gives the status to exit with.
func (p *Program) Run(args []string, in io.Reader, out, errOut io.Writer) int {
	closeFiles()
	p.dir = dataFolder(args)
	sqlite.SortBeside(p.dir)
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

// dataFolder finds --dir before the command line is read in full.
func dataFolder(args []string) string {
	flags := pflag.NewFlagSet("vigil", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	dir := flags.String("dir", "pb_data", "")
	_ = flags.Parse(args) // what is wrong is told when the whole line is read
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
	root.AddCommand(p.serveCommand(), p.demoCommand(), p.adminCommand(), p.auditCommand(), p.keysCommand(), p.icd10Command(), p.feesCommand(), p.claimsCommand(),
		p.simulateCommand(), p.ingestionCommand(), p.transmissionsCommand(),
		p.emrSandboxCommand(), p.backupCommand(), p.superuserCommand(), p.jobsCommand(), p.checkCommand())
	root.AddCommand(p.licensesCommand(), p.fleetCommand(), p.exportCommand())
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

// settings reads the settings; every problem is a line of the error.
func (p *Program) settings() (config.Settings, error) {
	if p.loaded != nil {
		return *p.loaded, nil
	}
	return config.Load(p.Environ)
}

func now() time.Time { return time.Now().UTC() }

// newLog writes JSON lines. No level prints health information: what could hold any refuses to print.
func newLog(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: inUnits}))
}

// inUnits writes a duration as a person does, 1.5s; the handler would count nanoseconds.
func inUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}

// helpOnly is what a command does that only has others below it; a word that names none of them is wrong usage.
func helpOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())}
	}
	return cmd.Help()
}

// noArgs refuses positional arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments", cmd.CommandPath())}
	}
	return nil
}

// oneArg refuses any other number of arguments than one, which is what it takes.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageError{fmt.Errorf("%s takes %s", cmd.CommandPath(), what)}
		}
		return nil
	}
}

// maybeOneArg refuses more than one argument.
func maybeOneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("%s takes one %s at most", cmd.CommandPath(), what)}
		}
		return nil
	}
}

// plain turns a refusal with field errors into one line for a person.
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

// progress shows a bar on a terminal, and a plain line at the end otherwise.
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
		_ = bar.Set(done) // a bar that cannot be drawn is no reason to stop
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
