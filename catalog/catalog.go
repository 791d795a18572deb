// Package catalog has the packages that ship with Drover: charts, and what bundles are made of
// them.
//
//	drover bundle build catalog/build-2.yaml --kube-version 1.36
package catalog

import "embed"

// Files has a directory for each chart, and a definition for each build of the bundles.
//
//go:embed build-*.yaml all:hello-eks-anywhere all:notes all:notes-store all:older
var Files embed.FS

// KubernetesVersions are those that there is a bundle for.
var KubernetesVersions = []string{"1.35", "1.36"}
