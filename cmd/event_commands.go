package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/dispatcher"
	"github.com/vigilhealth/vigil/internal/validate"
)

// eventsPatience bounds a command on the stream.
const eventsPatience = 30 * time.Second

func (p *Program) eventsCommand() *cobra.Command {
	command := &cobra.Command{Use: "events", Short: "Dead and unassigned device events of several practices", RunE: helpOnly}
	dead := &cobra.Command{Use: "dead", Short: "Events that a practice could not store", RunE: helpOnly}
	dead.AddCommand(
		&cobra.Command{Use: "list", Short: "List them: sequence, time, practice, reason", Args: noArgs, RunE: p.onStream(listDead)},
		&cobra.Command{Use: "retry [SEQUENCE…]", Short: "Send them, or all, to their practices again", RunE: p.onStream(retryDead)},
	)
	unassigned := &cobra.Command{Use: "unassigned", Short: "Events of devices without one owner", RunE: helpOnly}
	unassigned.AddCommand(
		&cobra.Command{Use: "list", Short: "List them: sequence, time, reason", Args: noArgs, RunE: p.onStream(listUnassigned)},
		&cobra.Command{Use: "show SEQUENCE", Short: "Print the content of one: it is health information", Args: oneArg("one sequence"), RunE: p.onDispatcher(showUnassigned)},
		&cobra.Command{Use: "assign SEQUENCE PRACTICE", Short: "Deliver one to a practice", Args: cobra.ExactArgs(2), RunE: p.onDispatcher(assignEvent)},
	)
	command.AddCommand(dead, unassigned)
	return command
}

// onStream runs work with the stream.
func (p *Program) onStream(work func(ctx context.Context, stream *events.Stream, args []string, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		settings, err := p.eventSettings()
		if err != nil {
			return err
		}
		stream, err := openEvents(settings, "vigil events", slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer stream.Close()
		ctx, stop := interruptible(cmd)
		defer stop()
		return work(ctx, stream, args, cmd.OutOrStdout())
	}
}

// onDispatcher runs work with a dispatcher that does not run.
func (p *Program) onDispatcher(work func(ctx context.Context, d *dispatcher.Dispatcher, args []string, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		settings, err := p.eventSettings()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd)
		defer stop()
		d, closeStream, err := newDispatcher(ctx, settings, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer closeStream()
		for !d.Directory.Loaded() {
			select {
			case <-d.Directory.Changed():
			case <-ctx.Done():
				return errors.New("the device directory cannot be read")
			}
		}
		return work(ctx, d, args, cmd.OutOrStdout())
	}
}

func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, eventsPatience)
	return ctx, func() { cancel(); stop() }
}

func listDead(ctx context.Context, stream *events.Stream, _ []string, out io.Writer) error {
	list, err := stream.All(ctx, events.Dead)
	for _, stored := range list {
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\n", stored.Sequence, validate.FormatInstant(stored.At), stored.Header[events.PracticeHeader], stored.Header[events.ReasonHeader])
	}
	return err
}

func listUnassigned(ctx context.Context, stream *events.Stream, _ []string, out io.Writer) error {
	list, err := stream.All(ctx, events.Unassigned)
	for _, stored := range list {
		fmt.Fprintf(out, "%d\t%s\t%s\n", stored.Sequence, validate.FormatInstant(stored.At), stored.Header[events.ReasonHeader])
	}
	return err
}

func retryDead(ctx context.Context, stream *events.Stream, args []string, out io.Writer) error {
	list, err := stream.All(ctx, events.Dead)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		list = nil
		for _, text := range args {
			stored, err := eventOf(ctx, stream, text)
			if err != nil {
				return err
			}
			list = append(list, stored)
		}
	}
	for n, stored := range list {
		if err := dispatcher.Retry(ctx, stream, stored); err != nil {
			return fmt.Errorf("%d of %d events were sent again: %w", n, len(list), err)
		}
	}
	fmt.Fprintf(out, "%d events were sent to their practices again\n", len(list))
	return nil
}

func eventOf(ctx context.Context, stream *events.Stream, text string) (events.Stored, error) {
	sequence, err := sequenceOf(text)
	if err != nil {
		return events.Stored{}, err
	}
	return stream.Get(ctx, events.Dead, sequence)
}

func sequenceOf(text string) (uint64, error) {
	sequence, err := strconv.ParseUint(text, 10, 64)
	if err != nil || sequence == 0 {
		return 0, usageError{fmt.Errorf("%q is no sequence: see the list", text)}
	}
	return sequence, nil
}

func showUnassigned(ctx context.Context, d *dispatcher.Dispatcher, args []string, out io.Writer) error {
	sequence, err := sequenceOf(args[0])
	if err != nil {
		return err
	}
	content, err := d.Content(ctx, sequence)
	if err == nil {
		fmt.Fprintf(out, "vendor %q, received %s\n%s\n", content.Vendor, validate.FormatInstant(content.ReceivedAt), content.Body)
	}
	return err
}

func assignEvent(ctx context.Context, d *dispatcher.Dispatcher, args []string, out io.Writer) error {
	sequence, err := sequenceOf(args[0])
	if err != nil {
		return err
	}
	if err := d.Assign(ctx, sequence, args[1]); err != nil {
		return err
	}
	fmt.Fprintf(out, "event %d was delivered to %s\n", sequence, args[1])
	return nil
}
