package guest

import (
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/userdata"
)

// Engine executes userdata on a system that another first process has booted, exactly as the first
// process of a local machine does.
type Engine struct{ machine *machine }

// NewEngine returns an engine that reports to the file of events. rename changes the host name.
func NewEngine(events *os.File, hostname string, rename func(hostname string) error) *Engine {
	return &Engine{&machine{
		console: console{begin: time.Now(), events: events}, spec: Spec{Hostname: hostname}, processes: newProcesses(),
		rename: func(s Spec) error { return rename(s.Hostname) },
	}}
}

// Execute executes a plan in the order of cloud-init. containerd must have been started.
func (e *Engine) Execute(plan userdata.Plan) error {
	for _, dir := range []string{"/run/cloud-init", "/var/lib/cloud/instance/scripts"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	e.machine.reportNotes(plan.Notes)
	return e.machine.executeUserdata(plan)
}

// AwaitRuntime waits until containerd accepts connections.
func (e *Engine) AwaitRuntime() error { return e.machine.awaitContainerd() }

// Report records an event.
func (e *Engine) Report(event Event) { e.machine.report(event) }

// ReportUserdata records the result of the userdata.
func (e *Engine) ReportUserdata(err error) {
	message := "succeeded: the userdata was carried out"
	if err != nil {
		message = "failed: " + err.Error()
	}
	e.machine.report(Event{Type: UserState, Message: truncateMiddle(message, maxEventMessage)})
}

// Printf writes to the console.
func (e *Engine) Printf(format string, args ...any) { e.machine.printf(format, args...) }

// Run runs a program, with its output on the console.
func (e *Engine) Run(argv ...string) error {
	return e.machine.processes.run(command{argv: argv, env: baseEnv(), dir: "/", out: os.Stdout})
}

// Output runs a program and returns what it prints.
func (e *Engine) Output(argv ...string) (string, error) {
	f, err := os.CreateTemp("", "drover-output-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	err = e.machine.processes.run(command{argv: argv, env: baseEnv(), dir: "/", out: f})
	data, readErr := os.ReadFile(f.Name())
	if err == nil {
		err = readErr
	}
	return string(data), err
}

// Traits are what the configuration of containerd and the kubelet depends on.
type Traits struct {
	// Systemd means that systemd manages cgroups.
	Systemd bool
	// Confined means that the system may not lower the score of a process, as in a container.
	Confined bool
}

// capSysResource is the number of the capability.
const capSysResource = 24

// ReadTraits returns the traits of this system.
func ReadTraits() Traits {
	comm, _ := os.ReadFile("/proc/1/comm")
	var header unix.CapUserHeader
	var data [2]unix.CapUserData
	header.Version = unix.LINUX_CAPABILITY_VERSION_3
	err := unix.Capget(&header, &data[0])
	return Traits{
		Systemd:  strings.TrimSpace(string(comm)) == "systemd",
		Confined: err != nil || data[0].Effective&(1<<capSysResource) == 0 || HasMappedUsers(),
	}
}

// KubeletSettings returns the settings of the kubelet of a system with such traits.
func (t Traits) KubeletSettings() ([]byte, error) {
	settings := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs"}
	if t.Systemd {
		settings["cgroupDriver"] = "systemd"
	}
	if hostCgroups() == cgroupV1 {
		settings["failCgroupV1"] = false
	}
	if HasMappedUsers() {
		settings["featureGates"] = map[string]any{"KubeletInUserNamespace": true}
	}
	const resolved = "/run/systemd/resolve/resolv.conf"
	if _, err := os.Stat(resolved); err == nil {
		settings["resolvConf"] = resolved // The other file points to the server itself.
	}
	return yaml.Marshal(settings)
}

// AuthorizeRoot adds keys to those that may log in as root.
func AuthorizeRoot(keys []string) error { return authorize("/root", keys, 0, 0) }
