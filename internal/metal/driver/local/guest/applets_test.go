package guest

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSystemctlRequest(t *testing.T) {
	for line, want := range map[string]request{
		"":                                {Verb: "list-units"},
		"--no-pager":                      {Verb: "list-units"},
		"start kubelet":                   {Verb: "start", Units: []string{"kubelet"}},
		"enable --now kubelet containerd": {Verb: "enable", Units: []string{"kubelet", "containerd"}, Now: true},
		"--now disable kubelet.service":   {Verb: "disable", Units: []string{"kubelet.service"}, Now: true},
		"daemon-reload":                   {Verb: "daemon-reload"},
		"is-active -q kubelet":            {Verb: "is-active", Units: []string{"kubelet"}},
		"--quiet --no-block --force stop kubelet": {Verb: "stop", Units: []string{"kubelet"}},
	} {
		args := strings.Fields(line)
		got, out := systemctlRequest(args)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("systemctl %s (-want +got):\n%s", line, diff)
		}
		quiet := strings.Contains(line, "-q") || strings.Contains(line, "--quiet")
		if wanted := map[bool]io.Writer{true: io.Discard, false: os.Stdout}[quiet]; out != wanted {
			t.Errorf("systemctl %s prints to %T", line, out)
		}
	}
}

func TestJournalOptions(t *testing.T) {
	for line, want := range map[string]journal{
		"":                             {path: bootLog},
		"-u kubelet":                   {path: "/var/log/units/kubelet.log"},
		"--unit kubelet.service":       {path: "/var/log/units/kubelet.log"},
		"--unit=kubelet":               {path: "/var/log/units/kubelet.log"},
		"-ukubelet":                    {path: "/var/log/units/kubelet.log"},
		"-u":                           {path: "/var/log/units/..log"},
		"-u kubelet -n 20":             {path: "/var/log/units/kubelet.log", lines: 20},
		"-n20 -f":                      {path: bootLog, lines: 20, follow: true},
		"--lines 5 --follow":           {path: bootLog, lines: 5, follow: true},
		"-n":                           {path: bootLog},
		"-n all":                       {path: bootLog},
		"-xe --no-pager -u containerd": {path: "/var/log/units/containerd.log"},
	} {
		if diff := cmp.Diff(want, journalOptions(strings.Fields(line)), cmp.AllowUnexported(journal{})); diff != "" {
			t.Errorf("journalctl %s (-want +got):\n%s", line, diff)
		}
	}
	if got := logPath("../../etc/passwd"); got != "/var/log/units/passwd.log" {
		t.Errorf("the log of a unit with slashes in its name is %s", got)
	}
}

func TestSelectedLines(t *testing.T) {
	const log = "a\nb\nc\n"
	for lines, want := range map[int]string{0: log, -1: log, 1: "c\n", 2: "b\nc\n", 3: log, 99: log} {
		if got := (journal{lines: lines}).selected(log); got != want {
			t.Errorf("the last %d lines are %q, want %q", lines, got, want)
		}
	}
}

func TestAppletOf(t *testing.T) {
	for _, name := range []string{"systemctl", "/usr/bin/journalctl", "/sbin/poweroff", "halt", "reboot", "shutdown", "kubeadm", "cloud-init"} {
		if run, ok := appletOf(name); !ok || run == nil {
			t.Errorf("%s is no applet", name)
		}
	}
	for _, name := range []string{"", "drover", "systemctl.real", "/usr/bin/systemctl/", "SYSTEMCTL"} {
		if _, ok := appletOf(name); ok != (name == "/usr/bin/systemctl/") {
			t.Errorf("%q is an applet: %t", name, ok)
		}
	}
	// On a host, a link to drover by the name of an applet is something else.
	if code, ok := Main([]string{"systemctl", "poweroff"}); ok {
		t.Errorf("outside of a machine an applet runs, with exit code %d", code)
	}
}

func TestCloudInitSupportsOnlyStatus(t *testing.T) {
	for _, args := range [][]string{nil, {"clean"}, {"--wait", "status"}} {
		if code := cloudInit(args); code != codeFailed {
			t.Errorf("cloud-init %v: exit code %d, want %d", args, code, codeFailed)
		}
	}
}

func TestAppletsFailWithoutAFirstProcess(t *testing.T) {
	if exists(controlSocket) {
		t.Skip("this is a machine")
	}
	for name, run := range map[string]func() int{
		"systemctl": func() int { return systemctl([]string{"start", "x"}) },
		"shutdown":  func() int { return shutdown([]string{"-h", "now"}) },
		"reboot":    func() int { return shutdown([]string{"-r", "now"}) },
	} {
		if code := run(); code != codeFailed {
			t.Errorf("%s: exit code %d, want %d", name, code, codeFailed)
		}
	}
}
