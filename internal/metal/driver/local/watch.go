package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const (
	offsetFile = "events.offset"
	// maxReason is the maximum length of the reason why a machine exited.
	maxReason = 16
	// maxEvent is the maximum length of an event. Longer ones are skipped.
	maxEvent = 64 << 10
	// maxBacklog is how much of the file of events is read. What comes before is skipped.
	maxBacklog = 1 << 20
)

// watch forwards the machine's reports and its end to metal until the driver is closed. It does
// nothing if the process is already watched.
func (m *machine) watch(p process) {
	m.watchMu.Lock()
	defer m.watchMu.Unlock()
	if m.watched == p {
		return
	}
	m.watched, m.wantOff, m.stopped = p, false, make(chan struct{})
	stopped := m.stopped
	ctx, cancel := context.WithCancel(m.driver.ctx)
	m.driver.wg.Go(func() {
		defer close(stopped)
		defer cancel()
		following := make(chan struct{})
		go func() {
			defer close(following)
			m.follow(ctx)
		}()
		over := awaitEnd(ctx, p)
		cancel()
		<-following
		if over {
			m.deliver() // its last reports
			m.ended(p)
		}
	})
}

// awaitEnd reports whether the process exited before the context ended.
func awaitEnd(ctx context.Context, p process) bool {
	fd, err := p.pidfd()
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(wake)
	stop := context.AfterFunc(ctx, func() { unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }) //nolint:errcheck // it is always writable
	defer stop()
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case fds[0].Revents != 0:
			return true
		default:
			return false
		}
	}
}

// ended handles the unrequested end of a machine.
func (m *machine) ended(p process) {
	m.watchMu.Lock()
	expected := m.wantOff
	if m.watched == p {
		m.watched = process{}
	}
	m.watchMu.Unlock()
	if expected {
		return
	}
	switch m.exitReason() {
	case guest.ExitReboot:
		m.driver.background(m, m.reboot)
	case guest.ExitFailed:
		// Already reported by the machine.
	case guest.ExitPowerOff:
		m.report(driver.Event{Phase: driver.Stopped, Message: "machine was shut down from inside"})
	default:
		m.report(driver.Event{Phase: driver.Stopped, Message: "machine exited unexpectedly: see its console"})
	}
}

// exitReason returns why the first process exited. Root on a machine can write anything there, as
// to the other files that the first process has open.
func (m *machine) exitReason() string {
	f, err := os.Open(m.path(guest.ExitFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	why, _ := io.ReadAll(io.LimitReader(f, maxReason))
	return string(why)
}

// reboot starts a machine that exited to reboot.
func (m *machine) reboot() error {
	if _, running := m.process(); running || !exists(m.path(guest.SpecFile)) {
		return nil
	}
	return m.powerOn(driver.Machine{ID: m.id})
}

// endWatch marks the end of the process as requested.
func (m *machine) endWatch() {
	m.watchMu.Lock()
	defer m.watchMu.Unlock()
	m.wantOff = true
}

// follow delivers events as they are written.
func (m *machine) follow(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		m.driver.log.Error("watching a local machine failed", "machine", m.id, "error", err)
		return
	}
	defer watcher.Close()
	if err := watcher.Add(m.dir); err != nil {
		m.driver.log.Error("watching a local machine failed", "machine", m.id, "error", err)
		return
	}
	for {
		m.deliver()
		select {
		case <-ctx.Done():
			return
		case _, open := <-watcher.Events:
			if !open {
				return
			}
		case <-watcher.Errors:
		}
	}
}

// deliver forwards new events to metal. After a crash it may repeat the last events.
func (m *machine) deliver() {
	m.deliverMu.Lock()
	defer m.deliverMu.Unlock()
	f, err := os.Open(m.path(guest.EventsFile))
	if err != nil {
		return // missing or removed
	}
	defer f.Close()
	offset := m.offset()
	delivered, err := m.deliverFrom(f, offset)
	if err != nil {
		m.driver.log.Error("delivering the events of a local machine failed", "machine", m.id, "error", err)
	}
	if delivered == offset {
		return
	}
	if err := atomicfile.Write(m.path(offsetFile), []byte(strconv.FormatInt(delivered, 10)), 0o600); err != nil {
		m.driver.log.Error("recording delivered events failed", "machine", m.id, "error", err)
	}
}

// deliverFrom forwards the events of a file from an offset, and returns the offset of the first
// that metal doesn't have.
func (m *machine) deliverFrom(f *os.File, offset int64) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return offset, err
	}
	offset = max(offset, size-maxBacklog)
	reader := bufio.NewReaderSize(io.NewSectionReader(f, offset, maxBacklog), maxEvent)
	for {
		line, err := reader.ReadSlice('\n')
		switch {
		case err == nil:
			if err := m.deliverLine(line); err != nil {
				return offset, err
			}
		case !errors.Is(err, bufio.ErrBufferFull):
			return offset, nil // an incomplete line
		}
		offset += int64(len(line))
	}
}

func (m *machine) offset() int64 {
	data, _ := os.ReadFile(m.path(offsetFile))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	return n
}

func (m *machine) deliverLine(line []byte) error {
	var e guest.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil //nolint:nilerr // Nobody can do anything about it.
	}
	err := m.driver.sink.Report(m.id, driver.Event{Phase: driver.Phase(e.Phase), Percent: e.Percent, Type: e.Type, Message: e.Message, Time: e.Time})
	if err != nil {
		return err
	}
	if e.Type == guest.UserState && guest.Booted(m.dir) {
		m.driver.tidy(m)
	}
	return nil
}
