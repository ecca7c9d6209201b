package module

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

// RecordCommand makes the command that captures the traffic of a running Caddy.
func RecordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record <file> [--duration <time>] [--state <name>] [--address <interface>] [--config <path> [--adapter <name>]]",
		Short: "Record the traffic of a running Caddy, without any text, to replay it",
		Long: `
Records the requests that pass a cache_aware policy of a running Caddy into a new
file, until it is interrupted: when each came, how long its prompt and answer
were, and which parts of the prompt it had in common with others, as numbers
that mean nothing outside of this file. It holds no text, no names and no
addresses. Caddy's admin API must be enabled.

What each routing policy would have made of the recorded traffic, on any number
of replicas, is shown by:

  caddy cache-aware simulate --trace <file> --report report.html

Only what is answered while it records is in it. It goes on over reloads.`,
		Args: cobra.ExactArgs(1),
	}
	client := newAdminClient(cmd)
	if err := cmd.Flags().MarkHidden("json"); err != nil {
		panic(err) // there is such a flag
	}
	duration := cmd.Flags().Duration("duration", 0, "How long to record (default: until interrupted)")
	state := cmd.Flags().String("state", defaultName, "Name of the policy's state, if it has one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true
		if *duration < 0 {
			return fmt.Errorf("--duration must not be negative: %v", *duration)
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		query := url.Values{"state": {*state}}
		if *duration > 0 {
			query.Set("duration", duration.String())
		}
		return client.record(ctx, args[0], query, cmd.ErrOrStderr())
	}
	return cmd
}

// record copies a recording into a new file and tells of it.
func (c adminClient) record(ctx context.Context, path string, query url.Values, progress io.Writer) error {
	address, err := caddycmd.DetermineAdminAPIAddress(*c.address, nil, *c.config, *c.adapter)
	if err != nil {
		return fmt.Errorf("determining admin API address: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("creating recording: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(address, http.MethodPost, recordPath+"?"+query.Encode(), nil, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("asking the admin API at %s: %w", address, err), file.Close(), os.Remove(path))
	}
	defer response.Body.Close()
	defer context.AfterFunc(ctx, func() { response.Body.Close() })()
	copied := recordingCopy{
		file: file, progress: newStatusLine(progress), path: path, begin: time.Now(), limited: query.Has("duration"),
	}
	err = copied.run(ctx, response.Body)
	return errors.Join(err, file.Close())
}

// recordingCopy writes a recording to its file.
type recordingCopy struct {
	file           *os.File
	progress       *statusLine
	path           string
	begin          time.Time
	limited        bool // it ends by itself
	requests, left int64
}

// run copies whole lines until the recording ends or ctx is done.
func (c *recordingCopy) run(ctx context.Context, from io.Reader) error {
	c.progress.begin(fmt.Sprintf("recording into %s, Ctrl-C ends it", c.path))
	reader := bufio.NewReaderSize(from, 64<<10)
	var err error
	for {
		var line []byte
		if line, err = reader.ReadBytes('\n'); err != nil {
			break
		}
		if _, err := c.file.Write(line); err != nil {
			return fmt.Errorf("writing recording: %w", err)
		}
		c.requests++
		c.left += leftOut(line)
		c.progress.show(c.summary())
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, io.EOF) && c.limited:
		c.progress.end(c.summary())
		return nil
	case errors.Is(err, io.EOF):
		c.progress.end(c.summary() + ", ended by Caddy: the policy is gone")
		return nil
	}
	c.progress.end(c.summary())
	return fmt.Errorf("reading recording: %w", err)
}

func (c *recordingCopy) summary() string {
	text := fmt.Sprintf("%s requests in %v", humanize.Comma(c.requests), time.Since(c.begin).Round(time.Second))
	if c.left > 0 {
		text += fmt.Sprintf(", %s left out", humanize.Comma(c.left))
	}
	return text + ": " + c.path
}

// leftOut reads the one field of a line that is of interest here. It is the last.
func leftOut(line []byte) (n int64) {
	_, text, found := bytes.Cut(line, []byte(`"left_out":`))
	for i := 0; found && i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = 10*n + int64(text[i]-'0')
	}
	return n
}

// statusLine is a line that tells how something goes: in place on a terminal, and
// only its beginning and end elsewhere.
type statusLine struct {
	out      io.Writer
	terminal bool
	shown    time.Time
}

func newStatusLine(out io.Writer) *statusLine {
	file, ok := out.(*os.File)
	if !ok {
		return &statusLine{out: out}
	}
	info, err := file.Stat()
	return &statusLine{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (l *statusLine) begin(text string) {
	if l.terminal {
		fmt.Fprint(l.out, text)
	} else {
		fmt.Fprintln(l.out, text)
	}
}

// show tells how it goes, a few times a second at most.
func (l *statusLine) show(text string) {
	if now := time.Now(); l.terminal && now.Sub(l.shown) > 200*time.Millisecond {
		l.shown = now
		fmt.Fprintf(l.out, "\r\x1b[K%s", text)
	}
}

func (l *statusLine) end(text string) {
	if l.terminal {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
	fmt.Fprintln(l.out, text)
}
