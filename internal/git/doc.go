// Package git reads and changes branches of remote Git repositories. It is the only package that
// knows Git: commands commit cluster specs with it, and the manager reads what a branch contains.
//
// A repository lives in memory and only for the duration of a call: nothing is written to disk, and
// no git program, configuration file or agent of the host is used. A change is a compare-and-swap
// of the branch, so that concurrent writers never overwrite each other. Servers are not trusted:
// what they send is bounded in size, number and time, and no error contains a credential.
//
// The package never logs, never force-pushes and never knows what the files mean. Where a
// repository and its credentials come from is known to internal/git/flux; the APIs of forges are in
// internal/git/github and internal/git/forge.
//
// Start with New, Repository.Tip and Repository.Update.
package git
