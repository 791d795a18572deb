// Package version says what this build is: its own version and those of the
// Kubernetes and Cluster API it carries. It holds facts only; checks of version
// skew belong to whoever makes the connection. Start at [Get].
package version

import (
	"runtime"
	"runtime/debug"
)

// Kubernetes is the release that a Drover of this version runs by default. A
// test holds it equal to what kube/kubernetes/go.mod pins.
const Kubernetes = "v1.36.3"

const (
	clusterAPIModule = "sigs.k8s.io/cluster-api"
	development      = "v0.0.0-dev"
)

// Set by the linker, see the Makefile. They are empty in a binary that was made
// by a bare "go build" or "go test".
var (
	version string
	commit  string
	date    string
)

// Info describes one build. A field that is not known is empty, except Version,
// which then is a development version that sorts before every release.
type Info struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Date       string `json:"date,omitempty"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	ClusterAPI string `json:"clusterAPI,omitempty"`
}

// Get describes the running build.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return from(Info{Version: version, Commit: commit, Date: date}, build)
}

// from completes what the linker set with what the compiler recorded.
func from(info Info, build *debug.BuildInfo) Info {
	info.Go = runtime.Version()
	info.Kubernetes = Kubernetes
	if build != nil {
		info.ClusterAPI = moduleVersion(build, clusterAPIModule)
		info.Commit = orSetting(info.Commit, build, "vcs.revision")
		info.Date = orSetting(info.Date, build, "vcs.time")
	}
	if info.Version == "" {
		info.Version = development
	}
	return info
}

func moduleVersion(build *debug.BuildInfo, path string) string {
	for _, m := range build.Deps {
		if m.Path != path {
			continue
		}
		if m.Replace != nil {
			return m.Replace.Version
		}
		return m.Version
	}
	return ""
}

func orSetting(value string, build *debug.BuildInfo, key string) string {
	if value != "" {
		return value
	}
	for _, s := range build.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
