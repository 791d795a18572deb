package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
)

func TestDecideUpgrade(t *testing.T) {
	u := agent.Upgrade{Device: "d", Version: "v1.36.3"}
	status := func(phase agent.Phase, version string) agent.Status {
		return agent.Status{State: agent.State{Device: "d", Phase: phase}, Kubernetes: version, KubeletActive: true, FreeDiskBytes: 8 << 30}
	}
	with := func(s agent.Status, change func(*agent.Status)) agent.Status {
		change(&s)
		return s
	}
	for name, tt := range map[string]struct {
		status agent.Status
		want   upgradeStep
		err    string
	}{
		"an older version":                     {status(agent.Done, "v1.35.4"), upgradeSend, ""},
		"the version that it runs":             {status(agent.Done, "v1.36.3"), upgradeDone, ""},
		"a kubelet that doesn't run":           {with(status(agent.Done, "v1.36.3"), func(s *agent.Status) { s.KubeletActive = false }), upgradeSend, ""},
		"an upgrade that was interrupted":      {with(status(agent.Upgrading, "v1.35.4"), func(s *agent.Status) { s.Upgrade = &agent.Upgraded{Version: "v1.36.3"} }), upgradeFollow, ""},
		"a full disk doesn't stop half-way":    {with(status(agent.Upgrading, "v1.35.4"), func(s *agent.Status) { s.FreeDiskBytes = 0 }), upgradeFollow, ""},
		"another upgrade":                      {with(status(agent.Upgrading, "v1.35.4"), func(s *agent.Status) { s.Upgrade = &agent.Upgraded{Version: "v1.36.4"} }), 0, "is being upgraded to Kubernetes v1.36.4"},
		"userdata that is still being carried": {status(agent.Executing, "v1.35.4"), 0, "not provisioned"},
		"a server that is being restored":      {status(agent.CleaningUp, "v1.35.4"), 0, "not provisioned"},
		"a server of another machine":          {with(status(agent.Done, "v1.35.4"), func(s *agent.Status) { s.Device = "e" }), 0, "no longer this machine"},
		"a full disk":                          {with(status(agent.Done, "v1.35.4"), func(s *agent.Status) { s.FreeDiskBytes = 1 << 30 }), 0, "1.0 GiB are free on the server, and 2 GiB are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decideUpgrade(tt.status, u)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || got != tt.want {
				t.Errorf("got %d, %v; want %d, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestUpgradeResult(t *testing.T) {
	u := agent.Upgrade{Device: "d", Version: "v1.36.3"}
	status := func(phase agent.Phase, version string, result *agent.Upgraded) agent.Status {
		return agent.Status{State: agent.State{Device: "d", Phase: phase, Upgrade: result}, Kubernetes: version}
	}
	for name, tt := range map[string]struct {
		status agent.Status
		want   string // part of the error
		final  bool
	}{
		"a successful upgrade":      {status(agent.Done, "v1.36.3", &agent.Upgraded{Version: "v1.36.3"}), "", false},
		"a failed upgrade":          {status(agent.Done, "v1.35.4", &agent.Upgraded{Version: "v1.36.3", Error: "no space left"}), "no space left", true},
		"one that still runs":       {status(agent.Upgrading, "v1.36.3", &agent.Upgraded{Version: "v1.36.3"}), "has not finished", false},
		"the result of another one": {status(agent.Done, "v1.35.4", &agent.Upgraded{Version: "v1.35.4"}), "has not finished", false},
		"no result":                 {status(agent.Done, "v1.35.4", nil), "has not finished", false},
		"a kubelet that is too old": {status(agent.Done, "v1.35.4", &agent.Upgraded{Version: "v1.36.3"}), `version "v1.35.4" after`, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := upgradeResult(tt.status, u)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			var final permanent
			if errors.As(err, &final) != tt.final {
				t.Errorf("tried again: %t, want %t", !errors.As(err, &final), !tt.final)
			}
		})
	}
}
