package memory

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/driver"
)

func TestReadUserdata(t *testing.T) {
	hash := "sha256:" + strings.Repeat("ab", 32)
	worker := workerUserdata(hash)
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	if _, err := zw.Write([]byte(worker)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		data    string
		cluster string
		problem string
	}{
		"nothing makes no node":               {data: ""},
		"a script makes no node":              {data: "#!/bin/sh\nkubeadm init\n"},
		"a cloud-config without kubeadm":      {data: "#cloud-config\nruncmd: [ls]\n"},
		"a worker":                            {data: worker, cluster: hash},
		"a worker that is packed":             {data: zipped.String(), cluster: hash},
		"a worker that is packed and encoded": {data: base64.StdEncoding.EncodeToString(zipped.Bytes()), cluster: hash},
		"a worker in a template":              {data: "## template: jinja\n" + worker, cluster: hash},
		"a worker that trusts any CA":         {data: strings.Replace(worker, "caCertHashes:", "other:", 1), problem: "caCertHashes"},
		"a control plane without a CA":        {data: "#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm.yaml\n  content: |\n" + indent([]byte(initConfig)), problem: "ca.crt"},
		"ignition":                            {data: `{"ignition":{}}`, problem: "Ignition"},
		"broken YAML":                         {data: "#cloud-config\nwrite_files: [", problem: "cloud-config"},
		"an unknown encoding":                 {data: "#cloud-config\nwrite_files:\n- {path: /a, content: x, encoding: rot13}\n", problem: "rot13"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := parseUserdata(driver.Machine{Hostname: "h", Userdata: []byte(tt.data)})
			switch {
			case tt.problem != "":
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("err = %v, want %q in it", err, tt.problem)
				}
			case err != nil:
				t.Error(err)
			case tt.cluster == "" && b != nil:
				t.Errorf("makes a node: %+v", b)
			case tt.cluster != "" && (b == nil || b.clusterID != tt.cluster || b.nodeName != "h" || b.controlPlane):
				t.Errorf("makes %+v, want a worker of %s", b, tt.cluster)
			}
		})
	}
}

func TestTemplatesUseInstanceData(t *testing.T) {
	b, err := parseUserdata(driver.Machine{
		Hostname: "host", Instance: driver.InstanceData{InstanceID: "i-1", LocalHostname: "local"},
		Userdata: []byte("## template: jinja\n" + strings.Replace(workerUserdata("sha256:00"), "nodeRegistration: {}",
			"nodeRegistration: {name: '{{ ds.meta_data.local_hostname }}'}", 1)),
	})
	if err != nil || b == nil || b.nodeName != "local" {
		t.Errorf("node %+v, error %v; want the name from the template", b, err)
	}
}

// FuzzKubeadm reads configurations of kubeadm; the userdata around them is fuzzed in its own
// package.
func FuzzKubeadm(f *testing.F) {
	f.Add(initConfig)
	f.Add(joinControlPlane)
	f.Add("apiVersion: kubeadm.k8s.io/v1\nkind: JoinConfiguration\ndiscovery: {bootstrapToken: {caCertHashes: [a]}}\n")
	f.Fuzz(func(t *testing.T, content string) {
		b, err := readKubeadm(map[string]string{"/run/kubeadm/kubeadm.yaml": content}, driver.Machine{Hostname: "h"})
		if err == nil && b != nil && b.clusterID == "" {
			t.Error("a node without a cluster")
		}
	})
}
