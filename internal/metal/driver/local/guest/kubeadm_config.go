package guest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// patchConfig completes a configuration for "init". For "join", the other parts come from the
// cluster.
func patchConfig(data []byte, h traits) ([]byte, error) {
	documents, err := readDocuments(data)
	if err != nil {
		return nil, err
	}
	has := map[string]map[string]any{}
	for _, d := range documents {
		if kind, ok := d["kind"].(string); ok {
			has[kind] = d
		}
	}
	if has["InitConfiguration"] == nil && has["ClusterConfiguration"] == nil {
		return data, nil
	}
	proxy := has["KubeProxyConfiguration"]
	if proxy == nil {
		proxy = map[string]any{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
		documents = append(documents, proxy)
	}
	setDefault(proxy, "conntrack", map[string]any{})
	if conntrack, ok := proxy["conntrack"].(map[string]any); ok {
		setDefault(conntrack, "maxPerCore", 0)
	}
	if h.nftables {
		setDefault(proxy, "mode", proxyMode)
	}
	if cluster := has["ClusterConfiguration"]; cluster != nil {
		setDefaultArguments(cluster, "controllerManager", map[string]string{
			"kube-api-qps": "200", "kube-api-burst": "400", "leader-elect-retry-period": "1s",
		})
	}
	if h.cgroups == cgroupV1 {
		kubelet := has["KubeletConfiguration"]
		if kubelet == nil {
			kubelet = map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
			documents = append(documents, kubelet)
		}
		setDefault(kubelet, "failCgroupV1", false)
	}
	return writeDocuments(documents)
}

func setDefault(m map[string]any, key string, value any) {
	if m[key] == nil {
		m[key] = value
	}
}

// setDefaultArguments adds arguments of a component that are not set. They are a list of pairs
// since v1beta4 of the configuration, a map before.
func setDefaultArguments(cluster map[string]any, component string, defaults map[string]string) {
	setDefault(cluster, component, map[string]any{})
	settings, ok := cluster[component].(map[string]any)
	if !ok {
		return
	}
	version, _ := cluster["apiVersion"].(string)
	if settings["extraArgs"] == nil && strings.HasSuffix(version, "/v1beta3") {
		settings["extraArgs"] = map[string]any{}
	}
	switch arguments := settings["extraArgs"].(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(defaults)) {
			setDefault(arguments, name, defaults[name])
		}
	case []any, nil:
		list, _ := arguments.([]any)
		for _, name := range slices.Sorted(maps.Keys(defaults)) {
			if !hasArgument(list, name) {
				list = append(list, map[string]any{"name": name, "value": defaults[name]})
			}
		}
		settings["extraArgs"] = list
	}
}

func hasArgument(list []any, name string) bool {
	return slices.ContainsFunc(list, func(entry any) bool {
		argument, ok := entry.(map[string]any)
		return ok && argument["name"] == name
	})
}

func readDocuments(data []byte) ([]map[string]any, error) {
	var documents []map[string]any
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var d map[string]any
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if len(d) > 0 {
			documents = append(documents, d)
		}
	}
}

func writeDocuments(documents []map[string]any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), encoder.Close()
}
