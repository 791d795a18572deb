// Package release reconciles HelmReleaseProxies: one release on one cluster.
//
// A reconcile gathers facts without a request to the cluster (gather.go), decides with a pure
// function (decide.go), starts an operation (act.go), and reports (status.go). Operations run
// outside the workers of the controller. The package knows no package tool. Start with
// Controller.Reconcile.
package release
