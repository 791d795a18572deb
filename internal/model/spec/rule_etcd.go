package spec

import (
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const externalEtcd = "spec.externalEtcdConfiguration"

// EtcdGroup is the name of the machines of external etcd, as far as groups have names.
const EtcdGroup = "etcd"

// maxMembers is the limit of etcd: more members only slow it down.
const maxMembers = 7

// etcdCountRule requires a number of members that can lose some of them.
func etcdCountRule(c *anywherev1.Cluster) Violations {
	etcd := c.Spec.ExternalEtcdConfiguration
	const remedy = "use 1, or 3 or 5 to tolerate the loss of a machine"
	switch {
	case etcd == nil:
		return nil
	case etcd.Count <= 0 || etcd.Count%2 == 0:
		return violation(externalEtcd+".count", remedy, "external etcd count must be positive and odd")
	case etcd.Count > maxMembers:
		return violation(externalEtcd+".count", remedy, "external etcd count must not exceed %d", maxMembers)
	}
	return nil
}

func etcdMachinesRule(c *anywherev1.Cluster) Violations {
	etcd := c.Spec.ExternalEtcdConfiguration
	if etcd == nil {
		return nil
	}
	return machineGroup(c, etcd.MachineGroupRef, externalEtcd, "must specify machineGroupRef for etcd machines")
}

// etcdGroupRule reserves the name of the templates of etcd machines.
func etcdGroupRule(c *anywherev1.Cluster) Violations {
	if c.Spec.ExternalEtcdConfiguration == nil {
		return nil
	}
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		if g.Name != EtcdGroup {
			return nil
		}
		return violation(path+".name", "choose another name", "the name %s is reserved for external etcd", EtcdGroup)
	})
}

// topologyChange rejects a change between stacked and external etcd: data can't be moved from one
// to the other while a cluster runs.
func topologyChange(was, is *anywherev1.Cluster) Violations {
	before, after := was.Spec.ExternalEtcdConfiguration != nil, is.Spec.ExternalEtcdConfiguration != nil
	switch {
	case !before && after:
		return violation(externalEtcd, "remove it or create a new cluster", "cannot switch from stacked to external etcd topology")
	case before && !after:
		return violation(externalEtcd, "restore it or create a new cluster", "cannot switch from external to stacked etcd topology")
	}
	return nil
}
