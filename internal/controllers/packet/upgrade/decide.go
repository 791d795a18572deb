package upgrade

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/inplace"
)

// retryFailed is how long a failed upgrade rests before it is tried again.
const retryFailed = 30 * time.Second

// action is the next step of an upgrade.
type action string

const (
	actionWait  action = "wait"
	actionClaim action = "claim"
	actionDrain action = "drain"
	actionOrder action = "order"
	actionDone  action = "done"
	// actionRelease reverts what was done to a machine that turns out not to be upgradable.
	actionRelease action = "release"
)

// step is an action, and what it is waiting for.
type step struct {
	action  action
	message string
}

// facts are what a step depends on.
type facts struct {
	target string
	// claimed means that this machine is the one of its cluster that is upgraded, other is another
	// one that is, or "".
	claimed bool
	other   string
	// upgradable means that metal can upgrade the machine's device in place, and device is the last
	// upgrade of it, or nil.
	upgradable bool
	device     *client.KubernetesUpgrade
	// node is the machine's node, or nil while it can't be read.
	node *corev1.Node
	// cordoned is when the upgrade has cordoned the node; zero if it has not.
	cordoned time.Time
	// pods are those to evict, and blocked is why the last eviction was denied, or "".
	pods    []string
	blocked string
	// alone means that no other node could run the Pods.
	alone bool
	// drainTimeout bounds the wait for Pods; zero means no limit.
	drainTimeout time.Duration
	now          time.Time
}

// impossible is the message about a machine of a metal service that can't upgrade it.
const impossible = "impossible, since its metal service can't upgrade machines in place; restart that with this version of Drover, or replace the machine"

// decide returns the next step.
func decide(f facts) step {
	switch {
	case f.claimed:
		return proceed(f)
	case !f.upgradable:
		return step{actionWait, impossible}
	case f.other != "":
		return step{actionWait, inplace.WaitingForMachine + f.other + ", since one machine is upgraded at a time"}
	}
	return step{actionClaim, "starting"}
}

// proceed returns the next step of the machine whose turn it is.
func proceed(f facts) step {
	d := f.device
	mine := d != nil && d.Version == f.target
	switch {
	case mine && d.State == client.UpgradeSucceeded:
		return verify(f)
	case mine && d.State == client.UpgradePending:
		return step{actionWait, "installing Kubernetes " + f.target}
	case d != nil && d.State == client.UpgradePending:
		return step{actionWait, "waiting for the upgrade to " + d.Version + " to end"}
	case !f.upgradable:
		return step{actionRelease, impossible}
	case mine && d.State == client.UpgradeFailed && f.now.Sub(d.ChangedAt) < retryFailed:
		return step{actionWait, text.Truncate("failed and will be tried again: " + d.Message)}
	case f.node == nil:
		return step{actionWait, "waiting for the node"}
	}
	return drain(f)
}

// verify waits until the node runs the version.
func verify(f facts) step {
	switch {
	case f.node == nil:
		return step{actionWait, "waiting for the node"}
	case f.node.Status.NodeInfo.KubeletVersion != f.target:
		return step{actionWait, fmt.Sprintf("waiting for node %s to report %s instead of %s", f.node.Name, f.target, f.node.Status.NodeInfo.KubeletVersion)}
	case !isReady(f.node):
		return step{actionWait, fmt.Sprintf("waiting for node %s to be ready", f.node.Name)}
	}
	return step{actionDone, ""}
}

// drain moves Pods away first, unless there is nowhere to go: containers survive the restart of
// their kubelet.
func drain(f facts) step {
	order := step{actionOrder, "installing Kubernetes " + f.target}
	switch {
	case f.alone:
		return order
	case f.cordoned.IsZero():
		return step{actionDrain, "draining the node"}
	case len(f.pods) == 0:
		return order
	case f.drainTimeout > 0 && f.now.Sub(f.cordoned) >= f.drainTimeout:
		return order
	case f.blocked != "":
		return step{actionDrain, text.Truncate(fmt.Sprintf("draining the node: %d Pods are left; %s", len(f.pods), f.blocked))}
	}
	return step{actionDrain, fmt.Sprintf("draining the node: waiting for Pods %s", text.FirstN(f.pods, 3))}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
