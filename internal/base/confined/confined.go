// Package confined processes hostile input in a child process with hard limits of memory and time.
// The child is the same program, started again. It serves one piece of work at a time, stays for
// the next one, and ends when it is idle.
//
// The kernel enforces the memory limit (RLIMIT_DATA), so that it holds whatever the input does: an
// allocation that exceeds it ends the child. The parent enforces the time limit, and the kernel
// ends the child with the parent. Input gets what it asks for by calls, which the parent answers.
//
// A child is no sandbox for code: it runs as the same user, with the same files and network. It
// confines input of trusted code, such as a template engine.
//
//	parent                          child
//	  │── request ───────────────────▶│ work
//	  │◀─────────────────────── call ─│   (any number of times)
//	  │── answer ────────────────────▶│
//	  │◀───────────── result or error │
//
// Start with Serve and Pool.
package confined

import (
	"bufio"
	"errors"
	"io"
	"log"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Variables of the child's environment.
const (
	nameVariable   = "DROVER_CONFINED"
	memoryVariable = "DROVER_CONFINED_MEMORY"
)

// Call asks the parent for something. It runs in the child.
type Call func(question []byte) ([]byte, error)

// Work turns a request into a result. It runs in the child.
type Work func(request []byte, call Call) ([]byte, error)

// Serve turns this process into a worker and never returns, if it was started as one with this
// name. Otherwise it does nothing. It must be called before the program does anything else.
func Serve(name string, work Work) {
	if os.Getenv(nameVariable) != name {
		return
	}
	if err := serve(work); !errors.Is(err, io.EOF) {
		os.Exit(1)
	}
	os.Exit(0)
}

// serve works until the parent closes its end, which is io.EOF.
func serve(work Work) error {
	log.SetOutput(io.Discard) // What libraries log may contain values of Secrets.
	if err := confine(); err != nil {
		return err
	}
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	call := func(question []byte) ([]byte, error) {
		if err := send(out, calls, question); err != nil {
			return nil, err
		}
		kind, answer, err := receive(in, maxFrame)
		if err == nil && kind == fails {
			err = errors.New(string(answer))
		}
		return answer, err
	}
	for {
		_, request, err := receive(in, maxFrame)
		if err != nil {
			return err
		}
		kind := returns
		result, err := work(request, call)
		if err != nil {
			kind, result = fails, []byte(err.Error())
		}
		if err := send(out, kind, result); err != nil {
			return err
		}
	}
}

// confine limits the memory of this process. If the host has too little, the kernel ends this
// process before others.
func confine() error {
	limit, err := strconv.ParseUint(os.Getenv(memoryVariable), 10, 64)
	if err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // Optional: the limit holds anyway.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
}
