package fleet

// presence is whether a repository has a cluster.
type presence int

const (
	// unknown: the repository can't be read, or the path of its clusters is missing.
	unknown presence = iota
	// absent: the repository doesn't have the cluster.
	absent
	// broken: the repository has files of the cluster, but not a spec that can be applied.
	broken
	// present: the repository has the cluster.
	present
)

// application is the state of the Kustomization of a cluster.
type application int

const (
	// unapplied: it doesn't exist.
	unapplied application = iota
	// applied: it exists.
	applied
	// suspended: somebody has suspended it. Flux deletes nothing together with it.
	suspended
	// releasing: it is being deleted.
	releasing
)

// usage is the state of a Cluster.
type usage int

const (
	// gone: it doesn't exist.
	gone usage = iota
	// unused: its control plane has never been available.
	unused
	// used: it is ready, or has been.
	used
	// deleting: it is being deleted.
	deleting
)

// facts are what the action for a cluster depends on.
type facts struct {
	git presence
	// open reports whether the repository is connected to the namespace of the cluster.
	open          bool
	kustomization application
	cluster       usage
	// confirmed reports whether somebody has confirmed the removal.
	confirmed bool
	// removing reports whether a GitChange removes the cluster and Flux may not have fetched its
	// commit yet.
	removing bool
}

// action is what is done for a cluster.
type action string

const (
	// apply creates or updates the Kustomization.
	apply action = "Apply"
	// withdraw removes the confirmation of a removal, and applies.
	withdraw action = "Withdraw"
	// keep leaves everything as it is.
	keep action = "Keep"
	// waitForConfirmation keeps the cluster until somebody confirms its removal.
	waitForConfirmation action = "WaitForConfirmation"
	// remove deletes the Kustomization, and Flux what it has applied.
	remove action = "Remove"
	// forget deletes the Kustomization and keeps what Flux has applied.
	forget action = "Forget"
)

// decide returns the action for a cluster.
//
//	unknown, broken           keep
//	namespace not connected   forget
//	present                   apply; withdraw a confirmation unless a GitChange is removing it
//	absent, suspended         keep
//	absent, in use            wait for confirmation, then remove
//	absent                    remove
func decide(f facts) action {
	switch {
	case f.kustomization == releasing:
		return keep
	case !f.open && f.kustomization != unapplied:
		return forget
	case !f.open, f.git == unknown, f.git == broken:
		return keep
	case f.git == present && f.confirmed && !f.removing:
		return withdraw
	case f.git == present:
		return apply
	case f.kustomization == unapplied, f.kustomization == suspended:
		return keep
	case f.cluster == used && !f.confirmed:
		return waitForConfirmation
	}
	return remove
}
