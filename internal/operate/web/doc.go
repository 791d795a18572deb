// Package web serves the page that shows a fleet in a browser. It reads a management plane with the
// privileges of one kubeconfig, as package inspect does, and never reaches a workload cluster.
//
// A View watches the plane and keeps one Row per cluster; a hub sends changed rows to the open
// pages. Answers about one cluster come from the same caches. Actions are patches that the plane
// admits and audits like those of kubectl. The page itself is in /web. Start with New.
package web
