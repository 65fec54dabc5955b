// Vigil is a remote-patient-monitoring backend for clinical practices: one binary, one data folder.
//
// This package only puts things together: it reads the settings once, builds the engines, opens the three doors
// (routes, hooks, jobs) and offers the commands.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/fault"
)

// version is set when the binary is built.
var version = "development"

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) }

// Exit statuses: done, failed with one clear line on standard error, wrong usage.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func run(args, environ []string, in io.Reader, out, errOut io.Writer) int {
	root := rootCommand(dataFolder(args), environ)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(errOut, "vigil: %s\n", strings.TrimSpace(line))
	}
	var misused usageError
	if errors.As(err, &misused) || strings.HasPrefix(err.Error(), "unknown command") {
		fmt.Fprintln(errOut, "vigil: see vigil help")
		return exitUsage
	}
	return exitFailed
}

// program is what all commands share.
type program struct {
	environ []string
	dir     string
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

func rootCommand(dir string, environ []string) *cobra.Command {
	p := &program{environ: environ, dir: dir}
	root := &cobra.Command{
		Use: "vigil", Short: "Remote patient monitoring for clinical practices", Version: version,
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&p.dir, "dir", p.dir, "data folder")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.serveCommand(), p.demoCommand(), p.adminCommand(), p.auditCommand(), p.keysCommand(), p.icd10Command(), p.simulateCommand(), p.ingestionCommand(),
		p.emrSandboxCommand(), p.backupCommand(), p.superuserCommand())
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
func (p *program) settings() (config.Settings, error) { return config.Load(p.environ) }

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
