package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

func measureRecovery(ctx context.Context, b *bench) error {
	if err := b.up(ctx); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "manager"} {
		s, err := b.status(ctx)
		if err != nil {
			return err
		}
		pid := s.processes()[name]
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing %s: %w", name, err)
		}
		if err := b.awaitReady(ctx, name, pid); err != nil {
			return err
		}
		row(name, "%.1f s", time.Since(began).Seconds())
		if err := wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return b.recoverSupervisor(ctx)
}

// recoverSupervisor kills the one process that is not restarted: its children exit with it, and the
// next up restores all.
func (b *bench) recoverSupervisor(ctx context.Context) error {
	s, err := b.status(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := syscall.Kill(s.Supervisor.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing the supervisor: %w", err)
	}
	if err := b.up(ctx); err != nil {
		return err
	}
	row("supervisor, then `drover up`", "%.1f s", time.Since(began).Seconds())
	return nil
}
