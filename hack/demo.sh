#!/usr/bin/env bash
# The demo: a management plane from nothing, and a real cluster of two machines
# on it. Safe to run twice; "hack/demo.sh down" removes all traces.
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

	say "A cluster of one control plane machine and one worker"
	generate >"$DROVER_HOME/demo.yaml"
	run $drover kubectl apply -f "$DROVER_HOME/demo.yaml"
	local start=$SECONDS
	run $drover kubectl wait --for=condition=ControlPlaneInitialized --timeout=10m cluster/demo
	run $drover kubectl wait --for=condition=Available --timeout=10m cluster/demo
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

	say "What comes next"
	cat <<-TXT
	The plane, the machines and the cluster run in the background. Try:

	  export DROVER_HOME=$DROVER_HOME DROVER_METAL_HOME=$DROVER_METAL_HOME
	  export KUBECONFIG=$kubeconfig         # the workload cluster
	  bin/drover kubectl get pods -A -o wide
	  export KUBECONFIG=$KUBECONFIG              # the management plane
	  bin/drover kubectl scale machinedeployment demo-worker-a --replicas 2
	  bin/drover machine logs $($drover machine list -o json | sed -n 's/.*"hostname": "\(.*\)".*/\1/p' | head -1)
	  bin/drover kubectl delete cluster demo
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

# generate writes the manifests of the cluster.
generate() {
	local version
	version=$($drover version -o json | sed -n 's/.*"kubernetes": "\(v[^"]*\)".*/\1/p')
	PROJECT_ID=$($drover metal project list -o json | sed -n 's/.*"id": "\([^"]*\)".*/\1/p' | head -1) \
		bin/clusterctl generate cluster demo --from templates/cluster-template-local.yaml --kubernetes-version "$version" \
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
