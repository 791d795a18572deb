package guest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	logDir      = "/var/log/units"
	stopTimeout = 10 * time.Second
	// readyTimeout is how long a service of Type=notify may take to start.
	readyTimeout = time.Minute
	// A service that keeps failing is restarted with increasing delays.
	maxRestartDelay = 10 * time.Second
)

// States of a service, in systemd's words.
const (
	stateActive     = "active"
	stateActivating = "activating"
	stateInactive   = "inactive"
	stateFailed     = "failed"
)

// services are the units that were started.
type services struct {
	processes *processes
	say       func(format string, args ...any)
	// starting, if set, is called before a unit starts.
	starting func(unit string)
	mu       sync.Mutex
	running  map[string]*service
}

func newServices(p *processes, say func(format string, args ...any)) *services {
	return &services{processes: p, say: say, running: map[string]*service{}}
}

// service is one unit that is or was running.
type service struct {
	mu    sync.Mutex
	unit  *unit
	state string
	pid   int
	since time.Time
	last  string // the result of its last run
	stop  chan struct{}
	done  chan struct{}
}

// start starts a unit unless it is running.
func (s *services) start(name string) error {
	u, err := loadUnit("/", name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.running[u.name]; old != nil && old.alive() {
		return nil
	}
	if unmet := u.unmet(); unmet != "" {
		s.say("%s: not started: %s does not exist", u.name, unmet)
		return nil
	}
	if len(u.ignored) > 0 {
		s.say("%s: settings without effect here: %s", u.name, strings.Join(u.ignored, ", "))
	}
	if s.starting != nil {
		s.starting(u.name)
	}
	svc := &service{unit: u, state: stateActivating, since: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	s.running[u.name] = svc
	started := make(chan error, 1)
	go s.supervise(svc, started)
	return <-started
}

// unmet returns the first condition that is not met.
func (u *unit) unmet() string {
	for _, path := range u.conditions {
		path, negated := strings.CutPrefix(path, "!")
		if _, err := os.Stat(path); (err == nil) == negated {
			return path
		}
	}
	return ""
}

func (s *service) alive() bool {
	select {
	case <-s.done:
		return s.unit.remain && s.state == stateActive
	default:
		return true
	}
}

// supervise runs a unit until it ends for good. The result of the first start is sent to started.
func (s *services) supervise(svc *service, started chan<- error) {
	defer close(svc.done)
	delay := svc.unit.restartDelay
	for {
		begin := time.Now()
		ok, err := s.runOnce(svc, started)
		started = nil
		if svc.stopping() {
			svc.set(stateInactive, 0, "stopped")
			return
		}
		if !svc.unit.restarts(ok) {
			svc.settle(ok, err)
			return
		}
		s.say("%s: %v, starting again", svc.unit.name, err)
		svc.set(stateActivating, 0, fmt.Sprint(err))
		if time.Since(begin) > maxRestartDelay {
			delay = svc.unit.restartDelay
		}
		select {
		case <-svc.stop:
		case <-time.After(delay):
		}
		delay = min(2*delay+time.Millisecond, max(maxRestartDelay, svc.unit.restartDelay))
	}
}

// restarts reports whether a unit that ended is restarted.
func (u *unit) restarts(ok bool) bool {
	if u.kind == "oneshot" {
		return false
	}
	switch u.restart {
	case "always":
		return true
	case "on-failure", "on-abnormal":
		return !ok
	case "on-success":
		return ok
	}
	return false
}

// settle records the final state of a unit.
func (s *service) settle(ok bool, err error) {
	switch {
	case !ok:
		s.set(stateFailed, 0, fmt.Sprint(err))
	case s.unit.remain:
		s.set(stateActive, 0, "done")
	default:
		s.set(stateInactive, 0, "done")
	}
}

// runOnce runs the commands of a unit. Those of a oneshot run one after the other to completion;
// otherwise the last one is the service.
func (s *services) runOnce(svc *service, started chan<- error) (ok bool, err error) {
	report := firstOutcome(started)
	defer func() { report(err) }()
	u := svc.unit
	env, err := u.environment()
	if err != nil {
		return false, err
	}
	cred, err := credential(u.user)
	if err != nil {
		return false, err
	}
	log, err := openLog(u.name)
	if err != nil {
		return false, err
	}
	defer log.Close()
	ready, env, err := u.notifications(env)
	if err != nil {
		return false, err
	}
	defer ready.close()
	r := &run{services: s, svc: svc, command: command{env: env, dir: u.dir, out: log, cred: cred}, ready: ready, report: report}
	return r.lines(slices.Concat(u.pre, u.start))
}

// firstOutcome passes on the first outcome that it is called with.
func firstOutcome(started chan<- error) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			if started != nil {
				started <- err
			}
		})
	}
}

// run is one run of the commands of a unit.
type run struct {
	services *services
	svc      *service
	command  command // without the arguments
	ready    readiness
	report   func(error)
}

func (r *run) lines(lines []string) (ok bool, err error) {
	for i, line := range lines {
		words, mayFail := argv(line, r.command.env)
		if len(words) == 0 {
			continue
		}
		r.command.argv = words
		pid, ended, err := r.services.processes.start(r.command)
		if err != nil {
			return false, &exitError{argv: words, err: err}
		}
		r.svc.set(stateActivating, pid, "")
		if i == len(lines)-1 && r.svc.unit.kind != "oneshot" {
			go r.activate(pid)
		}
		if status := r.svc.await(pid, ended); status != 0 && !mayFail {
			return false, &exitError{argv: words[:1], status: status}
		}
	}
	return true, errors.New("ended")
}

// activate makes the service active once it is ready, which it may never be.
func (r *run) activate(pid int) {
	if !r.ready.await(readyTimeout) {
		return
	}
	r.svc.set(stateActive, pid, "")
	r.services.runPost(r.svc.unit, r.command.env, r.command.out)
	r.report(nil)
}

func (s *services) runPost(u *unit, env []string, log *os.File) {
	for _, line := range u.post {
		words, mayFail := argv(line, env)
		if len(words) == 0 {
			continue
		}
		if err := s.processes.run(command{argv: words, env: env, dir: u.dir, out: log}); err != nil && !mayFail {
			s.say("%s: %v", u.name, err)
		}
	}
}

// await waits for a process, and terminates it when the service is stopped.
func (s *service) await(pid int, ended <-chan syscall.WaitStatus) syscall.WaitStatus {
	select {
	case status := <-ended:
		return status
	case <-s.stop:
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	select {
	case status := <-ended:
		return status
	case <-time.After(stopTimeout):
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return <-ended
	}
}

func (s *service) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *service) set(state string, pid int, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state {
		s.since = time.Now()
	}
	s.state, s.pid, s.last = state, pid, last
}

// end stops a unit and waits until it has ended.
func (s *services) end(name string) {
	s.mu.Lock()
	svc := s.running[unitName(name)]
	s.mu.Unlock()
	if svc == nil {
		return
	}
	svc.mu.Lock()
	if !svc.stopping() {
		close(svc.stop)
	}
	svc.mu.Unlock()
	<-svc.done
	svc.set(stateInactive, 0, "stopped")
}

// endAll stops everything at once.
func (s *services) endAll() {
	s.mu.Lock()
	names := make([]string, 0, len(s.running))
	for name := range s.running {
		names = append(names, name)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() { s.end(name) })
	}
	wg.Wait()
}

// state returns the state of a unit.
func (s *services) state(name string) (state string, svc *service) {
	s.mu.Lock()
	svc = s.running[unitName(name)]
	s.mu.Unlock()
	if svc == nil {
		return stateInactive, nil
	}
	svc.mu.Lock()
	defer svc.mu.Unlock()
	return svc.state, svc
}

func openLog(name string) (*os.File, error) {
	if err := os.MkdirAll(logDir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
}

func logPath(name string) string {
	return filepath.Join(logDir, strings.TrimSuffix(unitName(name), ".service")+".log")
}

func credential(name string) (*syscall.Credential, error) {
	if name == "" || name == "root" {
		return nil, nil // no change of user
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
