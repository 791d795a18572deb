// Package transfer moves bundles, with the charts and images that they name, between registries and archives.
//
//	Registry   a registry, or a path in one                 registry.go, target.go, watch.go
//	Archive    an OCI layout in a tar                        archive.go, writer.go
//	Memory     what was just made                            memory.go
//	Copy       everything from one of these to another       copy.go, plan.go, send.go
//
// Everything is known by its digest: content that has another is never written, and what the other side has already is not sent again, so
// that a copy that was interrupted goes on where it was. Tags come last, and that of the bundle after all others.
//
// It decides nothing about signatures, and never changes what is signed. Start with Copy.
package transfer
