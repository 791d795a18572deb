package main

import "testing"

func TestClusterctlReportsItsModuleVersion(t *testing.T) {
	const pkg = "sigs.k8s.io/cluster-api/version"
	want := "-s -w -X " + pkg + ".gitMajor=1 -X " + pkg + ".gitMinor=14 -X " + pkg + ".gitVersion=v1.14.2"
	if got := clusterctlFlags("v1.14.2"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
