package etcd

import (
	"context"
	_ "embed" // The script that runs in machines.
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

//go:embed machine.sh
var script string

// Host runs programs in machines whose API server doesn't respond.
type Host interface {
	// Exec runs a program as root and returns its output. The error contains what it printed.
	Exec(ctx context.Context, device string, stdin io.Reader, argv ...string) (string, error)
}

// machine is a machine of the cluster.
type machine struct {
	name, device string
	// member runs etcd, server an API server. Others are workers.
	member, server bool
	etcd           member
	port           string
}

// run runs a verb of the script.
func (r *Restore) run(ctx context.Context, m *machine, stdin io.Reader, verb ...string) (string, error) {
	out, err := r.Host.Exec(ctx, m.device, stdin, append([]string{"bash", "-c", script, "etcd"}, verb...)...)
	if err != nil {
		return "", fmt.Errorf("machine %q: %w", m.name, err)
	}
	return out, nil
}

// member is how a machine runs etcd, from its static Pod.
type member struct {
	name, peer, data, metrics string
}

// inspect reads how a machine runs etcd and the API server. It changes nothing.
func (r *Restore) inspect(ctx context.Context, m *machine) error {
	if m.member {
		flags, err := r.flags(ctx, m, "etcd")
		if err != nil {
			return err
		}
		m.etcd = member{
			name: flags["name"], peer: flags["initial-advertise-peer-urls"], data: flags["data-dir"],
			metrics: strings.Split(flags["listen-metrics-urls"], ",")[0],
		}
		if m.etcd.name == "" || m.etcd.peer == "" || m.etcd.data == "" || m.etcd.metrics == "" {
			return fmt.Errorf("machine %q: the static Pod of etcd lacks one of --name, --initial-advertise-peer-urls, --data-dir and --listen-metrics-urls", m.name)
		}
	}
	if m.server {
		flags, err := r.flags(ctx, m, "kube-apiserver")
		if err != nil {
			return err
		}
		if m.port = flags["secure-port"]; m.port == "" {
			m.port = "6443"
		}
	}
	return nil
}

// flags returns the flags of a static Pod.
func (r *Restore) flags(ctx context.Context, m *machine, pod string) (map[string]string, error) {
	text, err := r.run(ctx, m, nil, "show", pod)
	if err != nil {
		return nil, err
	}
	flags, err := podFlags([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("machine %q: reading the static Pod %q: %w", m.name, pod, err)
	}
	return flags, nil
}

func podFlags(manifest []byte) (map[string]string, error) {
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal(manifest, pod); err != nil {
		return nil, err
	}
	flags := map[string]string{}
	for _, c := range pod.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "--") {
				flags[strings.TrimPrefix(name, "--")] = value
			}
		}
	}
	return flags, nil
}
