// Package gitops is what the commands of `drover gitops` do: it checks and compares cluster specs
// in Git, connects a repository to a management plane, disconnects it and replaces its credentials,
// and reads what Flux has applied.
//
// It uses the privileges of the person who runs it. It never commits: commands that change clusters
// request that from the manager, in package lifecycle. Start with Source and Plane.
package gitops
