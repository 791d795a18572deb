// Package registry is Drover's OCI registry: distribution over a directory, behind TLS, so that
// charts, bundles and images are available without internet access. Everyone who reaches it can
// read; only the owner of the plane, who can read its password, can write.
//
// It owns the directory and serves its content. It never pulls from other registries, and deletes
// content only on request.
//
//	Server   the HTTPS server                     server.go, access.go, certificate.go
//	store    the directory, with preloaded charts store.go, preload.go, collect.go
//	Chart    a validated chart archive            chart.go, chartartifact.go, pack.go
//	Client   the client that commands use         client.go
//
// Start with Open and Server.Serve, or with Connect.
package registry
