package machine

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/metal/client"
)

const (
	roleControlPlane = "master"
	roleWorker       = "node"
	roleEtcd         = "etcd"
	nextAvailable    = "next-available"
)

// placement is the location of a device; one of the two is set.
type placement struct{ metro, facility string }

// place returns where a device goes. The location of the machine takes precedence over its failure
// domain, which is a metro, and that over the location of the cluster.
func place(machine placement, failureDomain string, cluster placement) placement {
	switch {
	case machine.metro != "":
		return placement{metro: machine.metro}
	case machine.facility != "":
		return placement{facility: machine.facility}
	case failureDomain != "":
		return placement{metro: failureDomain}
	case cluster.metro != "":
		return placement{metro: cluster.metro}
	default:
		return placement{facility: cluster.facility}
	}
}

// misplaced returns how the location of the device differs, or "". A location that the API does not
// report counts as right.
func (p placement) misplaced(d *client.Device) string {
	if got := d.MetroCode(); p.metro != "" && got != "" && !strings.EqualFold(got, p.metro) {
		return "The device is in metro " + got + ", but the machine requires " + p.metro
	}
	if got := d.FacilityCode(); p.facility != "" && got != "" && !strings.EqualFold(got, p.facility) {
		return "The device is in facility " + got + ", but the machine requires " + p.facility
	}
	return ""
}

func (p placement) apply(o *client.DeviceOrder) {
	o.Metro = p.metro
	if p.facility != "" {
		o.Facility = []string{p.facility}
	}
}

// reservations returns the reservations to try in order; "" means without one.
func reservations(field string) []string {
	var ids []string
	for _, id := range strings.Split(field, ",") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
	}
	if i := slices.IndexFunc(ids, func(id string) bool { return strings.EqualFold(id, nextAvailable) }); i >= 0 {
		ids[i] = nextAvailable
	}
	if ids == nil {
		return []string{""}
	}
	return ids
}

// orders sends orders.
type orders interface {
	OrderDevice(ctx context.Context, project string, order client.DeviceOrder) (*client.Device, error)
}

// send tries one reservation after the other until one is free. If the project has no SSH key
// either, it orders the device without one.
func send(ctx context.Context, api orders, project string, order client.DeviceOrder, ids []string) (*client.Device, error) {
	var err error
	for _, id := range ids {
		order.HardwareReservationID = id
		var device *client.Device
		device, err = api.OrderDevice(ctx, project, order)
		if client.MissingKeys(err) && len(order.SSHKeys)+len(order.ProjectSSHKeys) == 0 {
			order.NoSSHKeys = true
			device, err = api.OrderDevice(ctx, project, order)
		}
		if !client.Is(err, client.Capacity) {
			return device, err
		}
	}
	return nil, err
}

// keys is the field sshKeys by kind.
type keys struct {
	inline  []client.SSHKey
	project []string
	unknown []string
}

// sortKeys separates public keys, IDs and labels. known are the keys of the project, which only
// labels require.
func sortKeys(field []string, hostname string, known []client.SSHKey) keys {
	var k keys
	for _, entry := range field {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
		case isPublicKey(entry):
			k.inline = append(k.inline, client.SSHKey{Label: label(entry, hostname), Key: entry})
		case uuid.Validate(entry) == nil:
			k.project = append(k.project, entry)
		default:
			k.byLabel(entry, known)
		}
	}
	return k
}

func (k *keys) byLabel(entry string, known []client.SSHKey) {
	i := slices.IndexFunc(known, func(key client.SSHKey) bool { return key.Label == entry })
	if i < 0 {
		k.unknown = append(k.unknown, entry)
		return
	}
	k.project = append(k.project, known[i].ID)
}

// needLabels reports whether the keys of the project have to be read.
func needLabels(field []string) bool {
	return slices.ContainsFunc(field, func(entry string) bool {
		entry = strings.TrimSpace(entry)
		return entry != "" && !isPublicKey(entry) && uuid.Validate(entry) != nil
	})
}

func isPublicKey(entry string) bool {
	kind, rest, ok := strings.Cut(entry, " ")
	return ok && rest != "" && (strings.HasPrefix(kind, "ssh-") || strings.HasPrefix(kind, "ecdsa-") || strings.HasPrefix(kind, "sk-"))
}

// label returns the comment of a key, otherwise the hostname.
func label(key, hostname string) string {
	if fields := strings.Fields(key); len(fields) > 2 {
		return fields[2]
	}
	return hostname
}
