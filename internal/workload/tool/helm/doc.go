// Package helm is the only importer of Helm, so that an upgrade of Helm touches one package. It turns charts into objects, see [Render], and
// puts releases onto clusters, see [Engine].
//
// It uses Helm's templates, values and order of objects, and keeps releases as Helm keeps them, so that the helm command works with them.
// What it does itself is the carrying out: each step can be cancelled and repeated, nothing waits for readiness, and a request is made only
// where it decides something. It downloads nothing, decides nothing about when, and never writes values to a log or into an error.
package helm
