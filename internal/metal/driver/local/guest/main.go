package guest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

const (
	bootLog    = "/var/log/cloud-init-output.log"
	resultFile = "/run/cloud-init/result"
	bootedFile = "/var/lib/cloud/instance/boot-finished"
	// killTimeout is how long processes have to exit when a machine is shut down.
	killTimeout = 5 * time.Second
)

// Main runs the part of a machine that this program was started as, if any. Call it before anything
// else.
func Main(args []string) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	name, args := args[0], args[1:]
	if len(args) == 2 && args[0] == InitCommand {
		return initialize(), true
	}
	// Only the name under which the driver has mounted the program counts: on a host, a link to
	// drover by one of these names means something else.
	if program, err := os.Executable(); err != nil || program != node.MachineProgram {
		return 0, false
	}
	run, ok := appletOf(name)
	if !ok {
		return 0, false
	}
	return run(args), true
}

// machine is the first process.
type machine struct {
	console
	spec      Spec
	processes *processes
	services  *services
	exit      *os.File
	off       chan string
	// rename makes the host name that of the spec.
	rename func(Spec) error
}

// ordinaryUmask is the umask of a booting machine: files of root are readable by others.
const ordinaryUmask = 0o022

// initialize runs the whole life of a machine.
func initialize() int {
	syscall.Umask(ordinaryUmask) // instead of the caller's
	m := &machine{console: console{begin: time.Now()}, off: make(chan string, 1), rename: writeNames}
	if err := m.open(); err != nil {
		m.printf("%v", err)
		return 1
	}
	if !hostIsReady() {
		return 1 // The host gave up or was killed.
	}
	if err := m.setUp(); err != nil {
		m.report(Event{Phase: "Failed", Type: "provisioning.failed", Message: "setting the machine up: " + err.Error()})
		m.recordExit(ExitFailed)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go m.boot()
	go rotateLogs()
	// Release memory that the rest of Drover allocated at start.
	debug.FreeOSMemory()
	select {
	case <-signals:
		m.end(ExitPowerOff)
	case why := <-m.off:
		m.end(why)
	}
	return 0
}

// open takes over the files of the host, which the machine can't reach.
func (m *machine) open() error {
	spec := os.NewFile(SpecFD, SpecFile)
	defer spec.Close()
	m.events, m.exit = os.NewFile(EventsFD, EventsFile), os.NewFile(ExitFD, ExitFile)
	for _, fd := range []int{EventsFD, ExitFD} {
		unix.CloseOnExec(fd)
	}
	return json.NewDecoder(spec).Decode(&m.spec)
}

// hostIsReady waits until the host has attached the network.
func hostIsReady() bool {
	unix.CloseOnExec(ReadyFD)
	f := os.NewFile(ReadyFD, "ready")
	defer f.Close()
	n, _ := f.Read(make([]byte, 1))
	return n == 1
}

// setUp turns the namespaces into a machine.
func (m *machine) setUp() error {
	if err := enterRoot(); err != nil {
		return err
	}
	os.Clearenv()
	for _, dir := range []string{"/run/drover", "/run/sshd", "/run/lock", "/run/cloud-init", "/run/containerd", "/run/systemd/system", "/var/lib/cloud/instance/scripts"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	m.processes = newProcesses()
	m.services = newServices(m.processes, m.printf)
	m.services.starting = m.closeUserdata()
	for _, step := range []func() error{
		m.name,
		func() error { return setUpNetwork(m.spec) },
		func() error { return writeIdentity(m.spec) },
		func() error { return writeKubeletSettings(m.spec) },
		func() error { return writeEndpoint(m.spec) },
		m.listen,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := loadRules(m.processes, "guard", guardRules(m.spec)); err != nil {
		return fmt.Errorf("keeping Pods away from the metadata service: %w", err)
	}
	if err := loadRules(m.processes, "machine", rules(m.spec)); err != nil {
		m.printf("the metadata service is at %q only, and what can't be reached is noticed late: %v", m.spec.Metadata, err)
	}
	return nil
}

// name sets the host name of the machine. Later boots keep the current one.
func (m *machine) name() error {
	if kept, err := os.ReadFile("/etc/hostname"); err == nil && booted() {
		m.spec.Hostname = strings.TrimSpace(string(kept))
		return unix.Sethostname([]byte(m.spec.Hostname))
	}
	return writeNames(m.spec)
}

// booted reports whether the machine has completed a boot before.
func booted() bool {
	_, err := os.Stat(bootedFile)
	return err == nil
}

// listen opens the sockets of the first process.
func (m *machine) listen() error {
	control, err := net.Listen("unix", controlSocket)
	if err != nil {
		return err
	}
	go m.serveControl(control)
	for _, a := range m.spec.Addresses {
		conn, err := net.ListenPacket("udp", netip.AddrPortFrom(a.IP, 53).String())
		if err != nil {
			return fmt.Errorf("listening for DNS queries: %w", err)
		}
		go serveDNS(conn)
	}
	return nil
}

// shutDown requests the shutdown of the machine; the first reason counts.
func (m *machine) shutDown(why string) {
	select {
	case m.off <- why:
	default:
	}
}

// end stops everything.
func (m *machine) end(why string) {
	m.printf("shutting down: %s", why)
	m.services.endAll()
	_ = unix.Kill(-1, unix.SIGTERM)
	if !m.awaitNoProcesses(killTimeout) {
		_ = unix.Kill(-1, unix.SIGKILL)
		m.awaitNoProcesses(killTimeout)
	}
	unix.Sync()
	m.recordExit(why)
	m.printf("off")
}

// recordExit records for the driver what to do next.
func (m *machine) recordExit(why string) {
	if _, err := m.exit.WriteString(why); err != nil {
		m.printf("recording the end: %v", err)
	}
}

// awaitNoProcesses waits until no other process is left, and tells whether that is so.
func (m *machine) awaitNoProcesses(timeout time.Duration) bool {
	deadline := time.After(timeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		m.processes.reap()
		if pids, _ := filepath.Glob("/proc/[0-9]*"); len(pids) <= 1 {
			return true
		}
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
}

func numCPU() int { return runtime.NumCPU() }

// maxLog is the maximum size of a unit's log.
const maxLog = 16 << 20

// rotateLogs bounds the size of logs. Writers append, so a log can be truncated while it is in use.
func rotateLogs() {
	for range time.Tick(time.Minute) {
		rotate(logDir, maxLog)
	}
}

// rotate keeps one former log of each that has reached the size.
func rotate(dir string, size int64) {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, log := range logs {
		info, err := os.Stat(log)
		if err != nil || info.Size() < size {
			continue
		}
		if data, err := os.ReadFile(log); err == nil {
			_ = os.WriteFile(log+".1", data, 0o600)
		}
		_ = os.Truncate(log, 0)
	}
}
