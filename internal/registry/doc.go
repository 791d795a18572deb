// Package registry is Drover's own OCI registry: distribution over a directory, behind TLS, so that charts, bundles and images need no
// internet. Whoever reaches it may read; only the owner of the plane, who can read its password, may write.
//
// It owns the directory and what is served from it. It never fetches anything, removes nothing unless told to, and reports to nobody.
//
//	Server   what serves                                 server.go, access.go, certificate.go
//	store    what is kept, and what is offered from the start  store.go, preload.go, collect.go
//	Chart    an archive, checked, as an OCI artefact     chart.go, artefact.go, pack.go
//	Client   what commands use                           client.go
//
// Start with Open and Server.Serve, or with Connect.
package registry
