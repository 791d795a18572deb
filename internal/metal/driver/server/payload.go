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
	if facts.Arch != "" && facts.Arch != runtime.GOARCH {
		return payload{}, fmt.Errorf("the server is %s, and the programs of this Drover are for %s", facts.Arch, runtime.GOARCH)
	}
	builder, err := node.NewBuilder(tags.KubernetesVersion(want.Tags), d.log)
	if err != nil {
		return payload{}, err
	}
	bundle, err := builder.Bundle(ctx)
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

func (p *payload) add(file string) (digest string, err error) {
	digest, err = remote.Digest(file)
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", file, err)
	}
	p.files = append(p.files, blob{file, digest})
	return digest, nil
}
