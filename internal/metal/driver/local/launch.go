package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/driver/local/confine"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const (
	// RunCommand is the hidden command that starts a machine and exits.
	RunCommand = "machine-run"
	// EnterCommand is the hidden command that runs a program in a machine.
	EnterCommand = "machine-enter"
)

// Main runs the part of a local machine that this program was started as, if any. Call it first in
// main.
func Main(args []string) (code int, ok bool) {
	switch {
	case len(args) == 4 && args[1] == RunCommand:
		return exitCode(run(args[2], args[3])), true
	case len(args) > 3 && args[1] == EnterCommand:
		return exitCode(enter(args[2], args[3:])), true
	}
	return guest.Main(args)
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// launch starts the first process of the machine through an intermediate process that exits, which
// makes the machine a child of the host's first process.
func (m *machine) launch() (process, error) {
	if err := m.driver.removeLink(m.id); err != nil {
		return process{}, err
	}
	var stderr strings.Builder
	cmd := exec.Command(m.driver.program, RunCommand, m.driver.name, m.dir)
	cmd.Args[0] = "drover"
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); err != nil {
		return process{}, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if s, err := guest.ReadSpec(m.dir); err == nil && !s.Mapped {
		m.driver.log.Warn("users of a local machine are users of the host: see its console", "machine", m.id)
	}
	p, ok := m.process()
	if !ok {
		return p, fmt.Errorf("the machine exited immediately; its console ends with: %s", m.consoleTail())
	}
	return p, nil
}

// consoleTail returns the end of the console output.
func (m *machine) consoleTail() string {
	f, err := os.Open(m.path(guest.ConsoleFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 500
	size, _ := f.Seek(0, io.SeekEnd)
	tail, _ := io.ReadAll(io.NewSectionReader(f, max(0, size-most), most))
	return string(bytes.TrimSpace(tail))
}

// run is the intermediate process. It enters the cgroups, clones the machine's first process into
// new namespaces, connects it to the bridge and releases it.
func run(name, dir string) error {
	spec, err := guest.ReadSpec(dir)
	if err != nil {
		return err
	}
	d := &Driver{name: name}
	files, err := openMachineFiles(dir)
	if err != nil {
		return err
	}
	defer files.close()
	// The first process inherits the mounts and restrictions of this thread.
	runtime.LockOSThread()
	u, err := mountRoot(spec, files.console)
	if err != nil {
		return err
	}
	if spec.Mapped = u.first != 0; spec.Mapped {
		if err := spec.Write(dir); err != nil {
			return err
		}
	}
	group := cgroup{home: d.cgroupName(), id: spec.ID, limits: limits{cpus: spec.CPUs, memory: spec.MemoryBytes}, owner: u.first, log: files.console}
	if err := group.enter(); err != nil {
		return err
	}
	ready, letGo, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := firstProcess(dir, ready, files)
	allowOpenFiles()
	if err := confine.Thread(); err != nil {
		return fmt.Errorf("confining the machine: %w", err)
	}
	if err := u.start(cmd); err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}
	err = d.connect(spec.ID, dir, cmd.Process.Pid)
	if err == nil {
		_, err = letGo.Write([]byte{1})
	}
	if err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return cmd.Process.Release()
}

// files are the files of a machine that its first process uses.
type files struct{ console, spec, events, exit *os.File }

func openMachineFiles(dir string) (f files, err error) {
	open := func(name string, flags int) (file *os.File) {
		if err == nil {
			file, err = os.OpenFile(filepath.Join(dir, name), flags, 0o600)
		}
		return file
	}
	const add = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	f = files{open(guest.ConsoleFile, add), open(guest.SpecFile, os.O_RDONLY), open(guest.EventsFile, add), open(guest.ExitFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)}
	return f, err
}

func (f files) close() {
	for _, one := range []*os.File{f.console, f.spec, f.events, f.exit} {
		one.Close()
	}
}

// mountRoot mounts the machine's root file system in a mount namespace of this thread, and makes it
// the thread's working directory. It returns the users of the machine.
func mountRoot(spec guest.Spec, console io.Writer) (users, error) {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return users{}, fmt.Errorf("creating a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return users{}, fmt.Errorf("making mounts private: %w", err)
	}
	return chooseUsers(spec, console, func(u users) error { return u.mountRoot(spec) })
}

func (u users) mountRoot(spec guest.Spec) error {
	namespace, err := u.namespace()
	if err != nil {
		return err
	}
	defer namespace.Close()
	root, err := guest.Root{Spec: spec, Users: namespace, First: u.first}.Mount()
	if err != nil {
		return err
	}
	return unix.Chdir(root)
}

// namespaces are the namespaces of a machine.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC |
	syscall.CLONE_NEWNET | syscall.CLONE_NEWCGROUP

// firstProcess inherits the working directory, which it may not be able to reach by its path.
func firstProcess(dir string, ready *os.File, f files) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", guest.InitCommand, dir)
	cmd.Args[0] = "drover"
	cmd.Stdout, cmd.Stderr = f.console, f.console
	cmd.ExtraFiles = []*os.File{ready, f.spec, f.events, f.exit}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	return cmd
}

// connect records the machine's process and attaches its link.
func (d *Driver) connect(id, dir string, pid int) error {
	p, err := identify(pid)
	if err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// Recorded first, so that the process can be found whatever happens next.
	if err := atomicfile.Write(filepath.Join(dir, stateFile), data, 0o600); err != nil {
		return err
	}
	return d.attachLink(id, pid)
}

// hardwareAddr returns the address of a machine's link. It is stable across boots, so that
// neighbors need not learn a new one.
func hardwareAddr(id string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(id))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
}

// attachLink creates a pair of links, one end in the bridge, the other in the machine.
func (d *Driver) attachLink(id string, pid int) error {
	bridge, err := netlink.LinkByName(d.bridgeName())
	if err != nil {
		return fmt.Errorf("finding the bridge: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = d.linkName(id)
	attrs.MasterIndex = bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: guest.LinkName, PeerNamespace: netlink.NsPid(pid), PeerHardwareAddr: hardwareAddr(id)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("adding link %q: %w", attrs.Name, err)
	}
	if err := securePort(veth, id); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return fmt.Errorf("setting link %q up: %w", attrs.Name, err)
	}
	return nil
}
