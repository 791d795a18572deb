// Package flux pins the controllers of Flux: its module file names the root packages of
// source-controller and kustomize-controller as tools, which hack/build compiles unchanged. Some
// modules that upstream requires can't be downloaded in the version that it names; the replace
// lines choose the nearest one that can.
package flux
