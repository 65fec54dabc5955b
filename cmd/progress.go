package cmd

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/schollz/progressbar/v3"
)

// progress shows a bar on a terminal, and a plain line at the end otherwise.
func progress(out io.Writer, what string) func(done, total int) {
	file, isFile := out.(*os.File)
	if info, err := fileInfo(file, isFile); err != nil || info.Mode()&os.ModeCharDevice == 0 {
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

func fileInfo(file *os.File, isFile bool) (os.FileInfo, error) {
	if !isFile {
		return nil, fs.ErrInvalid
	}
	return file.Stat()
}
