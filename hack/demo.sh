#!/usr/bin/env bash
# The demo: a management plane from nothing, and two real clusters on it, with
# add-ons and packages. Safe to run twice; "hack/demo.sh down" removes all traces.
set -euo pipefail
cd "$(dirname "$0")/.."

export DROVER_HOME="${DEMO_HOME:-$PWD/.demo}"
export DROVER_METAL_HOME="$DROVER_HOME-metal"
drover=bin/drover

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '\n$ %s\n' "$*"; "$@"; }
workload() { run $drover kubectl --kubeconfig "$kubeconfig" "$@"; }

up() {
	if ((EUID != 0)); then
		echo "The machines of the demo are made of Linux namespaces, which takes root: run sudo make demo" >&2
		exit 1
	fi
	say "A management plane and machines to use, from nothing, without Docker"
	run $drover up --metal local
	export KUBECONFIG="$DROVER_HOME/kubeconfig"
	kubeconfig="$DROVER_HOME/demo.kubeconfig"

	say "A network for Pods on every cluster that asks for one, as an add-on"
	network "{}" >"$DROVER_HOME/cni.yaml"
	run $drover kubectl apply -f "$DROVER_HOME/cni.yaml"

	say "A cluster of one control plane machine and one worker, and another beside it"
	local start=$SECONDS
	for name in demo other; do
		generate $name >"$DROVER_HOME/$name.yaml"
		run $drover kubectl apply -f "$DROVER_HOME/$name.yaml"
	done
	run $drover kubectl wait --for=condition=ControlPlaneInitialized --timeout=10m clusters.cluster.x-k8s.io/demo clusters.cluster.x-k8s.io/other
	run $drover kubectl wait --for=condition=Available --timeout=10m clusters.cluster.x-k8s.io/demo clusters.cluster.x-k8s.io/other
	echo "All nodes are ready, after $((SECONDS - start)) s."
	run bin/clusterctl describe cluster demo
	run $drover machine list

	say "Its kubeconfig, and a web server that is reached by the name of its Service"
	run $drover kubeconfig demo --output "$kubeconfig"
	workload get nodes
	workload delete job client --ignore-not-found
	workload apply -f docs/examples/web.yaml
	workload wait --for=condition=complete --timeout=3m job/client
	workload logs job/client

	say "Other values for the add-on: what would change, then the change"
	run $drover addon status cni
	network "{resources: {limits: {memory: 160Mi}}}" >"$DROVER_HOME/cni.yaml"
	run $drover addon diff -f "$DROVER_HOME/cni.yaml" || (($? == 1))
	run $drover kubectl apply -f "$DROVER_HOME/cni.yaml"
	run $drover addon status cni --wait 3m
	run $drover addon history cni

	say "Packages from a signed bundle: the same greeting on both clusters"
	bundles >"$DROVER_HOME/bundles.yaml"
	run $drover kubectl apply -f "$DROVER_HOME/bundles.yaml"
	run $drover kubectl wait --for=condition=Ready --timeout=2m -n eksa-packages pbc/demo pbc/other
	packages >"$DROVER_HOME/packages.yaml"
	run $drover apply packages -f "$DROVER_HOME/packages.yaml" --wait 5m
	run $drover list packages --cluster demo

	say "A newer bundle for one of them"
	run $drover upgrade packages --cluster demo --bundle-version v1-36-2 --wait 5m
	run $drover get packagebundles
	for name in demo other; do
		run $drover get packages --cluster $name
	done
	workload get --raw /api/v1/namespaces/default/services/http:my-hello:80/proxy/

	say "What comes next"
	cat <<-TXT
	The plane, the machines and the cluster run in the background. Try:

	  export DROVER_HOME=$DROVER_HOME DROVER_METAL_HOME=$DROVER_METAL_HOME
	  export KUBECONFIG=$kubeconfig         # the workload cluster
	  bin/drover kubectl get pods -A -o wide
	  export KUBECONFIG=$KUBECONFIG              # the management plane
	  bin/drover kubectl scale machinedeployment demo-worker-a --replicas 2
	  bin/drover machine logs $($drover machine list -o json | sed -n 's/.*"hostname": "\(.*\)".*/\1/p' | head -1)
	  bin/drover install package notes --package-name notes --cluster other --wait 5m
	  bin/drover kubectl delete clusters.cluster.x-k8s.io demo
	  make demo-down                             # remove all traces
	TXT
}

# network writes an add-on: the network's chart, from the plane's own registry,
# with these values.
network() {
	cat <<-YAML
	apiVersion: addons.cluster.x-k8s.io/v1alpha1
	kind: HelmChartProxy
	metadata:
	  name: cni
	spec:
	  clusterSelector:
	    matchLabels: {cni: drover}
	  repoURL: $($drover registry status -o json | sed -n 's/.*"charts": "\([^"]*\)".*/\1/p')
	  chartName: cni
	  releaseName: cni
	  namespace: kube-system
	  valuesTemplate: |
	    $1
	  options:
	    wait: true
	YAML
}

# bundles writes which bundle each cluster uses.
bundles() {
	for name in demo other; do
		cat <<-YAML
		---
		apiVersion: packages.eks.amazonaws.com/v1alpha1
		kind: PackageBundleController
		metadata: {name: $name, namespace: eksa-packages}
		spec: {activeBundle: v1-36-1}
		YAML
	done
}

# packages writes a package for each cluster, whose name it begins with.
packages() {
	for name in demo other; do
		cat <<-YAML
		---
		apiVersion: packages.eks.amazonaws.com/v1alpha1
		kind: Package
		metadata: {name: $name-my-hello, namespace: eksa-packages}
		spec:
		  packageName: hello-eks-anywhere
		  config: "title: Hello from $name"
		YAML
	done
}

# generate writes the manifests of a cluster.
generate() {
	local version
	version=$($drover version -o json | sed -n 's/.*"kubernetes": "\(v[^"]*\)".*/\1/p')
	PROJECT_ID=$($drover metal project list -o json | sed -n 's/.*"id": "\([^"]*\)".*/\1/p' | head -1) \
		bin/clusterctl generate cluster "$1" --from templates/cluster-template-local.yaml --kubernetes-version "$version" \
		--control-plane-machine-count 1 --worker-machine-count 1
}

down() {
	if [[ -x $drover ]]; then
		run $drover down --purge
		run $drover metal purge --yes
	elif [[ -e $DROVER_HOME || -e $DROVER_METAL_HOME ]]; then
		echo "bin/drover is gone and $DROVER_HOME is still there: run make, then make demo-down" >&2
		exit 1
	fi
}

case "${1:-up}" in
up) up ;;
down) down ;;
*) echo "usage: $0 [up|down]" >&2; exit 2 ;;
esac
