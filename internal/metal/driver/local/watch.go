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
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const offsetFile = "events.offset"

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
	why, _ := os.ReadFile(m.path(guest.ExitFile))
	switch string(why) {
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
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return
	}
	reader := bufio.NewReader(f)
	delivered := offset
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			break // an incomplete line
		}
		m.deliverLine(line)
		delivered += int64(len(line))
	}
	if delivered == offset {
		return
	}
	if err := atomicfile.Write(m.path(offsetFile), []byte(strconv.FormatInt(delivered, 10)), 0o600); err != nil {
		m.driver.log.Error("recording delivered events failed", "machine", m.id, "error", err)
	}
}

func (m *machine) offset() int64 {
	data, _ := os.ReadFile(m.path(offsetFile))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	return n
}

func (m *machine) deliverLine(line []byte) {
	var e guest.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	m.report(driver.Event{Phase: driver.Phase(e.Phase), Percent: e.Percent, Type: e.Type, Message: e.Message, Time: e.Time})
	if e.Type == guest.UserState && exists(m.path(guest.BootedFile)) {
		m.driver.tidy(m)
	}
}
