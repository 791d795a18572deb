package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
	"github.com/drover-dev/drover/internal/metal/remote"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// payload is what a server gets.
type payload struct {
	spec  agent.Spec
	files []blob
}

// blob is a file with its digest.
type blob struct{ source, digest string }

// payload returns what the server of a machine gets. Nothing of it comes from the internet.
func (d *Driver) payload(ctx context.Context, want driver.Machine) (payload, error) {
	facts := want.Server.Facts
	bundle, err := d.bundle(ctx, facts.Arch, tags.KubernetesVersion(want.Tags))
	if err != nil {
		return payload{}, err
	}
	p := payload{spec: agent.Spec{
		Device: want.ID, Hostname: want.Hostname, Address: facts.Address.Addr(), Link: facts.Link, Endpoint: want.Endpoint,
		Files: map[string]string{}, Links: maps.Clone(bundle.Links), Sandbox: bundle.Sandbox,
		SSHKeys: want.SSHKeys, Userdata: want.Userdata, Variables: want.Variables(),
	}}
	p.spec.Links["/usr/local/bin/kubeadm"] = agent.Program
	for _, to := range slices.SortedFunc(maps.Keys(bundle.Files), cmp.Compare[string]) {
		if p.spec.Files[to], err = p.add(bundle.Files[to]); err != nil {
			return p, err
		}
	}
	p.spec.Images, err = p.add(bundle.Images)
	return p, err
}

// bundle returns what a server needs for a version of Kubernetes.
func (d *Driver) bundle(ctx context.Context, arch, version string) (node.Bundle, error) {
	if arch != "" && arch != runtime.GOARCH {
		return node.Bundle{}, fmt.Errorf("the server is %s, and the programs of this Drover are for %s", arch, runtime.GOARCH)
	}
	builder, err := node.NewBuilder(version, d.log)
	if err != nil {
		return node.Bundle{}, err
	}
	return builder.Bundle(ctx)
}

// upgradePayload returns what a server gets for another version of Kubernetes. Containers keep
// their runtime.
func (d *Driver) upgradePayload(ctx context.Context, want driver.Machine, version string) (agent.Upgrade, []blob, error) {
	bundle, err := d.bundle(ctx, want.Server.Facts.Arch, version)
	if err != nil {
		return agent.Upgrade{}, nil, err
	}
	p, u := payload{}, agent.Upgrade{Device: want.ID, Version: version}
	if u.Kube, err = p.add(bundle.Files[node.ServerKubeProgram]); err != nil {
		return u, nil, err
	}
	u.Images, err = p.add(bundle.Images)
	return u, p.files, err
}

func (p *payload) add(file string) (digest string, err error) {
	digest, err = remote.Digest(file)
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", file, err)
	}
	p.files = append(p.files, blob{file, digest})
	return digest, nil
}
