package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/drover-dev/drover/hack/test/sandbox"
)

// conclude prints the tables and the verdict.
func (r *run) conclude() error {
	failed := failures(r.results, r.broken)
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used) // the figure is zero then
	fmt.Fprint(r.out, tables(r.results, time.Duration(used.Utime.Nano()+used.Stime.Nano())))
	fmt.Fprint(r.out, failed)
	verdict := fmt.Sprintf("in %.0f s on %d cores", time.Since(r.begun).Seconds(), runtime.NumCPU())
	if failed != "" {
		fmt.Fprintf(r.out, "make test: FAILED %s\n", verdict)
		return errFailed
	}
	fmt.Fprintf(r.out, "make test: passed %s\n", verdict)
	return nil
}

// kernelLeaks returns what the run leaked in the kernel. The kernel takes a moment to release what
// exited processes held.
func kernelLeaks(ctx context.Context, before sandbox.Kernel) []string {
	tick := time.NewTicker(grace / 10)
	defer tick.Stop()
	var left []string
	for range 10 {
		if left = sandbox.Snapshot().Since(before); len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for i := range left {
		left[i] = "left behind: " + left[i]
	}
	return left
}
