#!/usr/bin/env bash
# The demo: a management plane from nothing, and a first cluster on it. Safe to
# run twice; "hack/demo.sh down" removes all traces.
set -euo pipefail
cd "$(dirname "$0")/.."

export DROVER_HOME="${DEMO_HOME:-$PWD/.demo}"
drover=bin/drover
manifest=docs/examples/first-cluster.yaml

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '\n$ %s\n' "$*"; "$@"; }

up() {
	say "A management plane, from nothing, without Docker"
	run $drover up
	export KUBECONFIG="$DROVER_HOME/kubeconfig"

	say "A cluster, in plain Cluster API"
	run $drover kubectl apply -f $manifest
	run $drover kubectl wait --for=condition=Available=False --timeout=60s cluster/first

	say "What it is waiting for"
	run $drover status
	run bin/clusterctl describe cluster first --show-conditions=all

	say "What comes next"
	cat <<-TXT
	The plane runs in the background, and the cluster waits for a PacketCluster
	that nobody has made. Try:

	  export KUBECONFIG=$KUBECONFIG
	  bin/drover kubectl get clusters,secrets -A
	  bin/drover kubectl explain cluster.spec
	  bin/drover backup plane.backup --home $DROVER_HOME
	  make demo-down                # remove all traces
	TXT
}

down() {
	if [[ -x $drover ]]; then
		run $drover down --purge
	elif [[ -e $DROVER_HOME ]]; then
		echo "bin/drover is gone and $DROVER_HOME is still there: run make, then make demo-down" >&2
		exit 1
	fi
}

case "${1:-up}" in
up) up ;;
down) down ;;
*) echo "usage: $0 [up|down]" >&2; exit 2 ;;
esac
