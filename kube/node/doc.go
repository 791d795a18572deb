// Package node pins the programs that make a machine a Kubernetes node: its
// module file names containerd, runc and the CNI plugins as tools, which
// internal/kube/node/build compiles from upstream's own packages. The one program
// with source here is pause.
package node
