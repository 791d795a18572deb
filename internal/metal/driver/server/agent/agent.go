package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/base/filelock"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// Command is the hidden command of the drover program.
const Command = "server-agent"

// Main runs the agent if this program was started as one. Call it before anything else.
func Main(args []string) (code int, ok bool) {
	program, err := os.Executable()
	if err != nil || program != Program || len(args) == 0 {
		return 0, false
	}
	if filepath.Base(args[0]) == "kubeadm" {
		return guest.Kubeadm(node.ServerKubeProgram, args[1:]), true
	}
	if len(args) < 3 || args[1] != Command {
		return 0, false
	}
	run, known := verbs()[args[2]]
	if !known {
		fmt.Fprintf(os.Stderr, "the agent has no command %q\n", args[2])
		return 1, true
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// verbs are the commands of the agent.
func verbs() map[string]func(ctx context.Context, args []string) error {
	return map[string]func(ctx context.Context, args []string) error{
		"put":             putSpec,
		"provision":       provision,
		"status":          printStatus,
		"events":          printEvents,
		"put-upgrade":     putUpgrade,
		"upgrade":         upgrade,
		"clean":           clean,
		"addresses":       setAddresses,
		"apply-addresses": applyAddresses,
		"endpoint":        runEndpoint,
	}
}

// agent is the work on one server. One process at a time does it.
type agent struct {
	spec    Spec
	state   State
	journal journal
	engine  *guest.Engine
	release func()
}

// lockTimeout is how long a command waits for the one before.
const lockTimeout = 2 * time.Minute

// open locks the server and reads what is known about it.
func open(ctx context.Context) (*agent, error) {
	if err := os.MkdirAll(StateDir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := filelock.Wait(ctx, path("lock"))
	if err != nil {
		return nil, fmt.Errorf("waiting for another agent: %w", err)
	}
	a := &agent{journal: journal{root: "/", dir: StateDir}, release: func() { _ = lock.Close() }}
	if err := errors.Join(readJSON(stateFile, &a.state), readJSON(specFile, &a.spec)); err != nil {
		a.release()
		return nil, err
	}
	events, err := os.OpenFile(path(eventsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.release()
		return nil, err
	}
	unix.CloseOnExec(int(events.Fd()))
	a.engine = guest.NewEngine(events, a.spec.Hostname, a.rename)
	return a, nil
}

func (a *agent) enter(p Phase) error {
	a.state.Phase = p
	return writeJSON(stateFile, a.state)
}

// maxSpec bounds the specification that is read.
const maxSpec = 16 << 20

// putSpec stores the specification from standard input and starts the unit that provisions the
// server. It can be repeated for the same device.
func putSpec(ctx context.Context, _ []string) error {
	data, err := io.ReadAll(io.LimitReader(os.Stdin, maxSpec))
	if err != nil {
		return err
	}
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("reading the specification: %w", err)
	}
	switch s, err := readState(); {
	case err != nil:
		return err
	case s.Device != "" && s.Device != spec.Device:
		return fmt.Errorf("this server is device %s", s.Device)
	case s.Phase == CleaningUp:
		return errors.New("this server is being restored")
	case s.Phase == Executing || s.Phase == Done || s.Phase == Upgrading:
		return nil // The unit needs nothing any more, and holds the lock.
	}
	a, err := open(ctx)
	if err != nil {
		return err
	}
	defer a.release()
	return a.put(spec)
}

// put stores the specification of a server that is no device, or that is being installed.
func (a *agent) put(spec Spec) error {
	switch {
	case a.state.Device != "" && a.state.Device != spec.Device:
		return fmt.Errorf("this server is device %s", a.state.Device)
	case a.state.Phase != Empty && a.state.Phase != Installing:
		return nil // The unit went on while this process waited for it.
	case a.state.Device == "":
		if err := a.begin(spec.Device); err != nil {
			return err
		}
	}
	if err := writeJSON(specFile, spec); err != nil {
		return err
	}
	if err := a.write(filepath.Join(unitDir, Unit), provisionUnit); err != nil {
		return err
	}
	a.release() // For the unit.
	return errors.Join(a.engine.Run("systemctl", "daemon-reload"), a.engine.Run("systemctl", "enable", "--now", Unit))
}

// begin records what the server looks like before anything is changed.
func (a *agent) begin(device string) error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	a.state = State{Device: device, Hostname: hostname, Links: linkNames(), Tables: a.tables()}
	return a.enter(Installing)
}

// Status is what the agent reports.
type Status struct {
	State
	BootID string `json:"bootID"`
	// Kubernetes is the version of the kubelet's program, and KubeletActive whether it runs.
	Kubernetes    string `json:"kubernetes,omitempty"`
	KubeletActive bool   `json:"kubeletActive,omitempty"`
	FreeDiskBytes int64  `json:"freeDiskBytes"`
}

func printStatus(context.Context, []string) error {
	s, err := readState()
	if err != nil {
		return err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	out := Status{State: s, BootID: strings.TrimSpace(string(boot)), FreeDiskBytes: freeDisk()}
	engine := newEngine()
	out.Kubernetes, out.KubeletActive = versionOf(engine, kubeletProgram), runsKubelet(engine)
	return json.NewEncoder(os.Stdout).Encode(out)
}

// eventsPoll is how often the file of events is read.
const eventsPoll = 100 * time.Millisecond

// printEvents prints the file of events from an offset, until the server is provisioned.
func printEvents(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("events requires an offset")
	}
	offset, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return fmt.Errorf("reading the offset: %w", err)
	}
	tick := time.NewTicker(eventsPoll)
	defer tick.Stop()
	for {
		// The state comes first: all events of the last phase are in the file then.
		s, err := readState()
		if err != nil {
			return err
		}
		n, err := copyFrom(path(eventsFile), offset)
		if err != nil {
			return err
		}
		offset += n
		if s.Phase == Done || s.Phase == Empty {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func copyFrom(file string, offset int64) (int64, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(os.Stdout, f)
}

func setHostname(name string) error { return unix.Sethostname([]byte(name)) }
