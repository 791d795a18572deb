package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// applets are the programs of a machine that this executable implements under another name.
func applets() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		"systemctl":  systemctl,
		"journalctl": journalctl,
		"kubeadm":    kubeadm,
		"cloud-init": cloudInit,
		"poweroff":   func([]string) int { return sendRequest(request{Verb: ExitPowerOff}) },
		"halt":       func([]string) int { return sendRequest(request{Verb: ExitPowerOff}) },
		"reboot":     func([]string) int { return sendRequest(request{Verb: ExitReboot}) },
		"shutdown":   shutdown,

		"drover-endpoint": endpointAgent,
	}
}

func shutdown(args []string) int {
	if slices.Contains(args, "-r") {
		return sendRequest(request{Verb: ExitReboot})
	}
	return sendRequest(request{Verb: ExitPowerOff})
}

// systemctl sends its arguments to the first process.
func systemctl(args []string) int {
	r, out := systemctlRequest(args)
	return sendRequestTo(out, r)
}

// systemctlRequest reads the arguments of systemctl, and where its output goes.
func systemctlRequest(args []string) (request, io.Writer) {
	var r request
	var out io.Writer = os.Stdout
	for _, a := range args {
		switch {
		case a == "--now":
			r.Now = true
		case a == "--quiet" || a == "-q":
			out = io.Discard
		case strings.HasPrefix(a, "-"):
			// Mostly output options.
		case r.Verb == "":
			r.Verb = a
		default:
			r.Units = append(r.Units, a)
		}
	}
	if r.Verb == "" {
		r.Verb = "list-units"
	}
	return r, out
}

func sendRequest(r request) int { return sendRequestTo(os.Stdout, r) }

func sendRequestTo(out io.Writer, r request) int {
	conn, err := net.DialTimeout("unix", controlSocket, 5*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, "talking to the first process:", err)
		return codeFailed
	}
	defer conn.Close()
	var answer response
	if err := errors.Join(json.NewEncoder(conn).Encode(r), json.NewDecoder(conn).Decode(&answer)); err != nil {
		if r.Verb == ExitPowerOff || r.Verb == ExitReboot {
			return 0 // The first process may exit before it responds.
		}
		fmt.Fprintln(os.Stderr, "talking to the first process:", err)
		return codeFailed
	}
	fmt.Fprint(out, answer.Out)
	return answer.Code
}

// journalctl prints the log of a unit, or of the boot.
func journalctl(args []string) int { return journalOptions(args).print() }

// journal is which log to print, and how.
type journal struct {
	path   string
	lines  int // the last ones, or 0 for all
	follow bool
}

// journalOptions reads the arguments of journalctl.
func journalOptions(args []string) journal {
	j := journal{path: bootLog}
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch {
		case a == "-u" || a == "--unit":
			j.path = logPath(next())
		case strings.HasPrefix(a, "-u"), strings.HasPrefix(a, "--unit="):
			j.path = logPath(strings.TrimPrefix(strings.TrimPrefix(a, "--unit="), "-u"))
		case a == "-n" || a == "--lines":
			fmt.Sscan(next(), &j.lines) //nolint:errcheck // no number: all lines
		case strings.HasPrefix(a, "-n"):
			fmt.Sscan(a[2:], &j.lines) //nolint:errcheck // no number: all lines
		case a == "-f" || a == "--follow":
			j.follow = true
		}
	}
	return j
}

func (j journal) print() int {
	f, err := os.Open(j.path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "-- No entries --")
		return 0
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return codeFailed
	}
	fmt.Fprint(os.Stdout, j.selected(string(data)))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for j.follow {
		<-tick.C
		if _, err := io.Copy(os.Stdout, f); err != nil {
			return codeFailed
		}
	}
	return 0
}

// selected returns the lines to print.
func (j journal) selected(log string) string {
	if j.lines <= 0 {
		return log
	}
	return lastLines(log, j.lines) + "\n"
}

// cloudInit implements the query of scripts whether the boot has finished.
func cloudInit(args []string) int {
	if len(args) == 0 || args[0] != "status" {
		fmt.Fprintln(os.Stderr, "only \"cloud-init status [--wait]\" is there on a local machine")
		return codeFailed
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(resultFile)
		if err == nil {
			state := strings.TrimSpace(string(data))
			fmt.Fprintln(os.Stdout, "status:", state)
			if state == "error" {
				return codeFailed
			}
			return 0
		}
		if !slices.Contains(args, "--wait") {
			fmt.Fprintln(os.Stdout, "status: running")
			return 0
		}
		<-tick.C
	}
}

// appletOf returns the applet of that name, if any.
func appletOf(program string) (func(args []string) int, bool) {
	run, ok := applets()[filepath.Base(program)]
	return run, ok
}
