package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// status is the measured part of `drover status -o json`.
type status struct {
	Phase      string
	Supervisor struct{ PID int }
	Components []struct {
		Name, State string
		PID         int
	}
}

// processes maps the names of the plane's processes to their PIDs.
func (s status) processes() map[string]int {
	out := map[string]int{"supervisor": s.Supervisor.PID}
	for _, c := range s.Components {
		if c.PID != 0 { // the registry runs in the supervisor
			out[c.Name] = c.PID
		}
	}
	return out
}

func (b *bench) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.drover, args...)
	cmd.Env = append(os.Environ(), "DROVER_HOME="+b.home, "DROVER_METAL_HOME="+b.metalHome())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("drover %v: %w:\n%s", args, err, out.String())
	}
	return out.String(), nil
}

func (b *bench) up(ctx context.Context) error {
	_, err := b.run(ctx, "up")
	return err
}

func (b *bench) status(ctx context.Context) (status, error) {
	var s status
	out, err := b.run(ctx, "status", "-o", "json")
	if err != nil {
		return s, err
	}
	err = json.Unmarshal([]byte(out), &s)
	return s, err
}

// awaitReady polls until every component serves and the named one has a new process.
func (b *bench) awaitReady(ctx context.Context, name string, not int) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		s, err := b.status(ctx)
		if err != nil {
			return err
		}
		if s.Phase == "Ready" && s.processes()[name] != not {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("timed out after 2m waiting for %s to recover", name)
}
