// Package version describes this build: its own version, those of the Kubernetes and Cluster API
// that it contains, and the order of Drover's versions. It only contains facts; callers decide
// which versions are compatible. Start at [Get].
//
// The file VERSION names the next release. hack/version.sh derives the version of a commit from it.
package version

import (
	_ "embed" // for the file VERSION
	"runtime"
	"runtime/debug"
	"strings"
)

// Kubernetes is the release that this version of Drover runs by default. A test compares it with
// kube/kubernetes/go.mod.
const Kubernetes = "v1.36.3"

const clusterAPIModule = "sigs.k8s.io/cluster-api"

//go:embed VERSION
var next string

// Set by the linker, see the Makefile. They are empty after a bare "go build" or "go test".
var (
	version string
	commit  string
	date    string
)

// Info describes one build. Unknown fields are empty, except Version, which is then that of a
// development build without a number.
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
		info.Version = strings.TrimSpace(next) + "-" + development
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
