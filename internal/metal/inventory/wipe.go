package inventory

import (
	"errors"
	"fmt"
)

// What is removed from a server that is restored.
const (
	// WipeKubernetes removes everything that Drover and Kubernetes have put on a server.
	WipeKubernetes = "kubernetes"
	// WipeDisks erases disks. CheckWipe says why that is rejected.
	WipeDisks = "disks"
)

// CheckWipe returns why a server can't be wiped like this. Empty stands for the default.
func CheckWipe(wipe string) error {
	switch wipe {
	case "", WipeKubernetes:
		return nil
	case WipeDisks:
		return errors.New("disks can't be wiped over SSH: the disk of the inventory is the one that the server runs from, " +
			"and the server would be lost half-way without proof that the data is gone; use " + WipeKubernetes + ", or erase the disk from other media")
	}
	return fmt.Errorf("wipe %.80q is unknown: use %s", wipe, WipeKubernetes)
}
