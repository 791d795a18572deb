package driver

// Variables returns the variables of the machine's userdata templates, by cloud-init's names.
func (m Machine) Variables() map[string]any {
	v1 := map[string]any{
		"instance_id": m.Instance.InstanceID, "local_hostname": m.Instance.LocalHostname, "region": m.Instance.Region,
		"availability_zone": m.Instance.AvailabilityZone, "cloud_name": m.Instance.CloudName, "platform": m.Instance.Platform,
		"distro": m.Instance.Distro, "distro_version": m.Instance.DistroVersion,
	}
	metadata := map[string]any{
		"instance_id": m.Instance.InstanceID, "instance-id": m.Instance.InstanceID,
		"local_hostname": m.Instance.LocalHostname, "local-hostname": m.Instance.LocalHostname, "hostname": m.Hostname,
		"plan": m.Plan, "operating_system": m.OS, "metro": m.Instance.Region, "facility": m.Instance.AvailabilityZone, "tags": m.Tags,
	}
	for _, a := range m.Addresses {
		key := "local_ipv4"
		if a.Public {
			key = "public_ipv4"
		}
		if a.IP.Is4() && metadata[key] == nil {
			metadata[key] = a.IP.String()
		}
	}
	all := map[string]any{"v1": v1, "ds": map[string]any{"meta_data": metadata}}
	for key, value := range v1 {
		all[key] = value
	}
	return all
}
