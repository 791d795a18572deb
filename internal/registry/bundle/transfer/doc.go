// Package transfer copies bundles, with their charts and images, between registries and archives.
//
//	Registry   a registry, or a path in one      registry.go, target.go, watch.go
//	Archive    a tar file with an OCI layout     archive.go, writer.go
//	Memory     content in memory                 memory.go
//	Copier     the copy between two of them      copy.go, plan.go, send.go
//
// All content is addressed and verified by digest. Existing content is not sent again, so that an
// interrupted copy can be repeated. Tags are set last, and the tag of the bundle after all others.
//
// The package doesn't verify signatures, and never changes signed content. Start with Copier.Copy.
package transfer
