// Package helm is the only importer of Helm, so that an upgrade of Helm touches
// one package. It turns charts into objects; it never talks to a cluster or a
// registry, and never logs values. Start at [Render].
package helm
