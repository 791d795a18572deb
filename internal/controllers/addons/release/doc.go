// Package release is the controller of HelmReleaseProxy: one release on one cluster, as its spec says.
//
// A reconcile gathers facts, none of which needs a request to the cluster (gather.go), chooses what to do with a pure function
// (decide.go), starts it (act.go), and tells what is known (status.go). What takes long runs as an operation beside the controller's
// workers. It knows nothing of Helm: that is up to a tool. Start with Controller.Reconcile.
package release
