package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// Files in the directory of a machine.
const (
	// startedFile exists before anything of the machine is on its server.
	startedFile = "started"
	// doneFile exists when the server is provisioned.
	doneFile = "done"
	// offsetFile has how much of the events metal knows.
	offsetFile = "offset"
	// elasticFile has the elastic addresses that the server has.
	elasticFile = "elastic"
)

const (
	// retryFirst and retryLast bound the time between attempts to reach a server.
	retryFirst = time.Second
	retryLast  = 30 * time.Second
	// provisionTimeout is how long a server may take, unreachable times included.
	provisionTimeout = 30 * time.Minute
)

// machine is the work on one server for one device. Work is done in turns.
type machine struct {
	driver *Driver
	id     string
	dir    string
	turn   chan struct{}

	mu      sync.Mutex
	cancel  context.CancelFunc
	elastic []netip.Addr
	removed bool
}

func (m *machine) lock(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *machine) unlock() { <-m.turn }

// begin returns the context of work that a removal interrupts.
func (m *machine) begin() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(m.driver.ctx, provisionTimeout)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel = cancel
	if m.removed {
		cancel()
	}
	return ctx, cancel
}

// interrupt ends work that is in progress or queued, because the machine is being removed.
func (m *machine) interrupt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removed = true
	if m.cancel != nil {
		m.cancel()
	}
}

func (m *machine) interrupted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removed
}

func (m *machine) report(e driver.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	_ = m.driver.sink.Report(m.id, e) // Metal logs it.
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) has(name string) bool {
	_, err := os.Stat(m.path(name))
	return err == nil
}

func (m *machine) started() bool     { return m.has(startedFile) }
func (m *machine) provisioned() bool { return m.has(doneFile) }

func (m *machine) mark(name, content string) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(m.path(name), []byte(content), 0o600)
}

// forget removes what is known about the machine.
func (m *machine) forget() error { return os.RemoveAll(m.dir) }

func (m *machine) ensure(want driver.Machine, power driver.Power) error {
	switch {
	case m.interrupted():
		return nil
	case power == driver.Off:
		return m.powerOff(want)
	case m.provisioned():
		return m.powerOn(want)
	}
	err := m.provision(want)
	if m.interrupted() {
		return nil
	}
	return err
}

// provision makes the server the machine. It can be interrupted at any point and continues then.
func (m *machine) provision(want driver.Machine) error {
	ctx, cancel := m.begin()
	defer cancel()
	m.report(driver.Event{Phase: driver.Provisioning, Percent: 10, Type: "provisioning.101", Message: "Provisioning started"})
	load, err := m.driver.payload(ctx, want)
	if err != nil {
		return err
	}
	if err := m.mark(startedFile, ""); err != nil {
		return err
	}
	return m.retry(ctx, func() error { return m.attempt(ctx, want, load) })
}

// permanent is an error that another attempt doesn't change.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// retry repeats an attempt until it succeeds or the context ends. A new reason is reported.
func (m *machine) retry(ctx context.Context, attempt func() error) error {
	reason := ""
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		err := attempt()
		var final permanent
		if err == nil || errors.As(err, &final) {
			return err
		}
		if ctx.Err() == nil && err.Error() != reason {
			reason = err.Error()
			m.driver.log.Warn("a server is not as wanted yet", "machine", m.id, "error", err)
			m.report(driver.Event{Type: "driver.error", Message: reason})
		}
		select {
		case <-ctx.Done():
			if m.driver.ctx.Err() != nil {
				return m.driver.ctx.Err()
			}
			return fmt.Errorf("giving up after %s: %w", provisionTimeout, err)
		case <-time.After(wait):
		}
	}
}

// attempt does everything over one connection.
func (m *machine) attempt(ctx context.Context, want driver.Machine, load payload) error {
	c, err := m.driver.dial(ctx, *want.Server)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Send(ctx, m.driver.program, agent.Program); err != nil {
		return err
	}
	m.report(driver.Event{Phase: driver.Provisioning, Percent: 20, Type: "provisioning.102", Message: "Agent installed"})
	if err := sendBlobs(ctx, c, load.files); err != nil {
		return err
	}
	m.report(driver.Event{Phase: driver.Provisioning, Percent: 30, Type: "provisioning.103", Message: "Programs sent"})
	data, err := json.Marshal(load.spec)
	if err != nil {
		return err
	}
	if err := runAgent(ctx, c, "put", remote.Streams{In: bytes.NewReader(data)}); err != nil {
		return err
	}
	if err := m.follow(ctx, c); err != nil {
		return err
	}
	if err := m.mark(doneFile, ""); err != nil {
		return err
	}
	return m.setAddressesOn(ctx, c)
}

func sendBlobs(ctx context.Context, c *remote.Client, files []blob) error {
	for _, file := range files {
		if _, err := c.Send(ctx, file.source, filepath.Join(agent.Blobs, file.digest)); err != nil {
			return err
		}
	}
	return nil
}

// runAgent runs a command of the agent as root.
func runAgent(ctx context.Context, c *remote.Client, line string, s remote.Streams) error {
	return c.Root(ctx, agent.Program+" "+agent.Command+" "+line, s)
}

// follow passes events of the server on until it is provisioned. Every event is passed on at least
// once, whatever is killed.
func (m *machine) follow(ctx context.Context, c *remote.Client) error {
	r, w := io.Pipe()
	offset := m.offset()
	passed := make(chan error, 1)
	go func() { passed <- m.pass(r, offset) }()
	err := runAgent(ctx, c, fmt.Sprintf("events %d", offset), remote.Streams{Out: w})
	_ = w.CloseWithError(io.EOF)
	return errors.Join(err, <-passed)
}

func (m *machine) offset() int64 {
	data, _ := os.ReadFile(m.path(offsetFile))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n
}

// maxLine bounds an event. Root on a server chooses it.
const maxLine = 64 << 10

func (m *machine) pass(r *io.PipeReader, offset int64) error {
	defer r.CloseWithError(errors.New("the events can't be read"))
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		var e guest.Event
		if json.Unmarshal(scanner.Bytes(), &e) == nil {
			m.report(driver.Event{Phase: driver.Phase(e.Phase), Percent: e.Percent, Type: e.Type, Message: e.Message, Time: e.Time})
		}
		offset += int64(len(scanner.Bytes())) + 1
		if err := m.mark(offsetFile, strconv.FormatInt(offset, 10)); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// want records which elastic addresses the machine should have.
func (m *machine) want(elastic []netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.elastic = slices.Clone(elastic)
}

func (m *machine) wanted() []netip.Addr {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.elastic)
}

func textOf(elastic []netip.Addr) string {
	words := make([]string, len(elastic))
	for i, ip := range elastic {
		words[i] = ip.String()
	}
	return strings.Join(words, " ")
}

// hasAddresses reports whether the server has these elastic addresses, so that nothing has to
// connect to it.
func (m *machine) hasAddresses(elastic []netip.Addr) bool {
	have, err := os.ReadFile(m.path(elasticFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return string(have) == textOf(elastic)
}

// setAddresses connects to a provisioned server and sets its elastic addresses.
func (m *machine) setAddresses() error {
	ctx, cancel := m.begin()
	defer cancel()
	s, found, err := m.driver.inventory.ServerOf(m.id)
	if err != nil || !found || m.interrupted() {
		return err
	}
	err = m.retry(ctx, func() error {
		c, err := m.driver.dial(ctx, s)
		if err != nil {
			return err
		}
		defer c.Close()
		return m.setAddressesOn(ctx, c)
	})
	if err != nil {
		m.driver.log.Error("setting elastic addresses failed", "machine", m.id, "error", err)
	}
	return nil // A server that can't be reached hasn't failed.
}

// setAddressesOn sets the addresses, again if others are wanted once that is recorded: until then,
// nothing else notices the change.
func (m *machine) setAddressesOn(ctx context.Context, c *remote.Client) error {
	for {
		wanted := m.wanted()
		if m.hasAddresses(wanted) {
			return nil
		}
		if err := runAgent(ctx, c, "addresses "+textOf(wanted), remote.Streams{}); err != nil {
			return fmt.Errorf("setting elastic addresses: %w", err)
		}
		if err := m.mark(elasticFile, textOf(wanted)); err != nil {
			return err
		}
	}
}

// contains reports whether a file has exactly this content.
func (m *machine) contains(name, content string) bool {
	data, err := os.ReadFile(m.path(name))
	return err == nil && string(data) == content
}

func (m *machine) drop(name string) error { return os.Remove(m.path(name)) }
