package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drover-dev/drover/internal/metal/userdata"
)

const (
	// sentinel is the file by which Cluster API's bootstrap data marks success.
	sentinel        = "/run/cluster-api/bootstrap-success.complete"
	containerdWait  = time.Minute
	maxEventMessage = 1000
)

// boot starts services and executes the userdata.
func (m *machine) boot() {
	first := !booted()
	go m.services.startEnabled()
	go m.importImages()
	if first {
		m.report(Event{Phase: "Running", Percent: 100, Type: "provisioning.110", Message: "Device phoned home and is ready to go"})
	} else {
		m.report(Event{Phase: "Running", Percent: 100, Message: "booted"})
	}
	plan, err := m.spec.plan()
	if err != nil {
		m.finish(err)
		return
	}
	if !first {
		m.runEveryBoot(plan)
		return
	}
	m.reportNotes(plan.Notes)
	if plan.Empty() && m.spec.Userdata == nil {
		m.finish(nil)
		return
	}
	m.report(Event{Type: UserState, Message: "running: executing the userdata"})
	m.finish(m.executeUserdata(plan))
	if plan.Power != "" {
		m.shutDown(string(plan.Power))
	}
}

// runEveryBoot performs the steps of every boot.
func (m *machine) runEveryBoot(plan userdata.Plan) {
	if err := mountAll(plan); err != nil {
		m.printf("%v", err)
	}
	if len(plan.Boot) > 0 {
		if err := m.runScript("bootcmd", userdata.ShellScript(plan.Boot)); err != nil {
			m.printf("%v", err)
		}
	}
	_ = os.WriteFile(resultFile, []byte("done\n"), 0o600)
}

// reportNotes reports the parts of the userdata that have no effect.
func (m *machine) reportNotes(notes []userdata.Note) {
	for _, n := range notes {
		m.report(Event{Type: UserState, Message: "running: userdata: " + n.String()})
	}
}

// executeUserdata executes the userdata in the order of cloud-init.
func (m *machine) executeUserdata(plan userdata.Plan) error {
	if len(plan.Boot) > 0 {
		if err := m.runScript("bootcmd", userdata.ShellScript(plan.Boot)); err != nil {
			m.printf("%v", err)
		}
	}
	if plan.Hostname != "" && plan.Hostname != m.spec.Hostname {
		m.spec.Hostname = plan.Hostname
		if err := m.rename(m.spec); err != nil {
			return fmt.Errorf("setting the host name: %w", err)
		}
	}
	for _, step := range []func(userdata.Plan) error{mountAll, writeFiles, addAccounts, writeDeferredFiles, setTimezone, trustCerts} {
		if err := step(plan); err != nil {
			return err
		}
	}
	if err := m.awaitContainerd(); err != nil {
		return err
	}
	return m.runAll(plan)
}

// containerdConfig is the configuration file that scripts for real machines write.
const containerdConfig = "/etc/containerd/config.toml"

// reportContainerdConfig reports a changed configuration file that containerd does not read here.
func (m *machine) reportContainerdConfig() {
	data, err := os.ReadFile(containerdConfig)
	if err == nil && !strings.HasPrefix(string(data), "# Without effect") {
		m.report(Event{Type: UserState, Message: "running: " + containerdConfig + " was changed, which has no effect: " +
			"containerd reads /usr/lib/drover/containerd.toml and /etc/containerd/conf.d"})
	}
}

// runAll runs the commands, then the scripts. A failure does not prevent the next from running.
func (m *machine) runAll(plan userdata.Plan) error {
	var failed error
	if len(plan.Commands) > 0 {
		failed = m.runScript("runcmd", userdata.ShellScript(plan.Commands))
		failed = errors.Join(failed, bootstrapped(plan.Commands))
	}
	for _, s := range plan.Scripts {
		failed = errors.Join(failed, m.runScript(s.Name, string(s.Content)))
	}
	m.reportContainerdConfig()
	if plan.Final != "" {
		m.printf("%s", strings.ReplaceAll(plan.Final, "$UPTIME", fmt.Sprintf("%.2f", time.Since(m.begin).Seconds())))
	}
	return failed
}

// bootstrapped detects a failed kubeadm even if a later command succeeded.
func bootstrapped(commands []userdata.Command) error {
	for _, c := range commands {
		if !strings.Contains(c.Line, sentinel) {
			continue
		}
		if _, err := os.Stat(sentinel); err != nil {
			return fmt.Errorf("kubeadm failed: %s was not written", sentinel)
		}
	}
	return nil
}

// finish records the result of the boot.
func (m *machine) finish(err error) {
	state, message := "done", "succeeded: the userdata was carried out"
	if err != nil {
		state, message = "error", "failed: "+err.Error()
	}
	message = truncateMiddle(message, maxEventMessage)
	if err := os.WriteFile(bootedFile, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		m.printf("recording that the boot is over: %v", err)
	}
	if err := os.WriteFile(resultFile, []byte(state+"\n"), 0o600); err != nil {
		m.printf("recording that the boot is over: %v", err)
	}
	m.report(Event{Type: UserState, Message: message})
}

// truncateMiddle shortens a text to about limit bytes: its beginning names what failed, its end
// says why.
func truncateMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit/2], "") + " … " + strings.ToValidUTF8(text[len(text)-limit/2:], "")
}

// awaitContainerd waits until kubeadm can use containerd.
func (m *machine) awaitContainerd() error {
	deadline := time.Now().Add(containerdWait)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("unix", "/run/containerd/containerd.sock")
		if err == nil {
			conn.Close()
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("containerd did not start: %w", err)
		}
		<-tick.C
	}
}

// runScript runs a script with its output on the console and in the log. The error includes the
// last lines.
func (m *machine) runScript(name, content string) error {
	path := filepath.Join("/var/lib/cloud/instance/scripts", name)
	if err := writeProgram(path, content); err != nil {
		return err
	}
	log, err := os.OpenFile(bootLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		log.Close()
		return err
	}
	last := &lastWriter{}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		defer log.Close()
		defer r.Close()
		io.Copy(io.MultiWriter(os.Stdout, log, last), r) //nolint:errcheck // ends when all writers have
	}()
	err = m.processes.run(command{argv: []string{path}, env: baseEnv(), dir: "/", out: w})
	w.Close()
	select {
	case <-copied:
	case <-time.After(200 * time.Millisecond): // A background process holds it open.
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, last)
	}
	return nil
}

// writeProgram writes an executable file. A process started concurrently must not inherit the file
// descriptor: until that process executes another program, the file would be busy and could not be
// executed.
func writeProgram(path, content string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(content), 0o700) //nolint:gosec // a script is a program
}

// lastWriter keeps the last lines written to it.
type lastWriter struct {
	mu   sync.Mutex
	text []byte
}

func (w *lastWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	w.text = w.text[max(0, len(w.text)-2000):]
	return len(p), nil
}

func (w *lastWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return lastLines(strings.ToValidUTF8(string(w.text), ""), 8)
}

// writeIdentity writes the machine's identity files and the SSH keys of its users.
func writeIdentity(s Spec) error {
	if err := os.WriteFile("/etc/machine-id", []byte(s.machineID()+"\n"), 0o644); err != nil { //nolint:gosec // public
		return err
	}
	if err := os.WriteFile("/var/lib/cloud/instance/instance-id", []byte(s.ID+"\n"), 0o644); err != nil { //nolint:gosec // public
		return err
	}
	return authorize("/root", s.SSHKeys, 0, 0)
}

// machineID changes when the machine is wiped, and only then.
func (s Spec) machineID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", s.ID, s.Reinstalled))
	return hex.EncodeToString(sum[:16])
}
