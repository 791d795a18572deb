// Package flux knows where a repository and its credentials come from: a FluxConfig together with
// environment variables, or a Secret in the form that Flux reads. Both become a git.Remote, and a
// git.Remote becomes such a Secret.
//
// It never connects to a repository or to an API server. Start with FromEnvironment and FromSecret.
package flux
