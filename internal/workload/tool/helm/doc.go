// Package helm is the only importer of Helm, so that an upgrade of Helm touches one package. It
// renders charts, see [Render], and installs releases on clusters, see [Engine].
//
// It uses Helm's templates, values and ordering, and stores releases in Helm's format, so that the
// helm command works with them. It carries out operations itself: each step can be canceled and
// repeated, nothing blocks on readiness, and no request is made that decides nothing. It downloads
// nothing, never decides when to act, and never writes values to a log or into an error.
package helm
