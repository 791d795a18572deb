#!/usr/bin/env bash
# The demo, which is the whole story: a management cluster from nothing, a cluster of somebody who sees no
# credential, an add-on, a package, more workers, another Kubernetes, and what to look at. Each command is
# printed before it runs. What is done is not done again, so that it can be interrupted and run twice;
# "hack/demo.sh down" removes all traces, whatever state it is in.
set -euo pipefail
cd "$(dirname "$0")/.."

# DEMO_HOME is where everything goes, DEMO_BIN where drover is.
export PATH="${DEMO_BIN:-$PWD/bin}:$PATH"
home="$(realpath -m "${DEMO_HOME:-.demo}")"
export DROVER_HOME="$home/plane" DROVER_METAL_HOME="$home/metal"
unset KUBECONFIG

mgmt=mgmt/mgmt-eks-a-cluster.kubeconfig
dev=dev/dev-eks-a-cluster.kubeconfig

bold="" plain=""
[[ ! -t 1 ]] || { bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true); }
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
show() { printf '\n%s$ cat %s%s\n' "$bold" "$1" "$plain"; cat "$1"; }

# edit changes the spec of Ann's cluster.
edit() { printf "\n%s\$ sed -i '%s' dev.yaml%s\n" "$bold" "$1" "$plain"; sed -i "$1" dev.yaml; }

# refused runs what must not be allowed.
refused() {
	if run "$@"; then
		echo "That should have been refused." >&2
		return 1
	fi
}

# write puts standard input into a file.
write() { cat >"$1.new" && mv "$1.new" "$1"; }

# made says that a cluster was created completely.
made() { [[ -e $1/$1-eks-a-cluster.kubeconfig ]] && ! grep -qs '^command: create' "$1/generated/$1-checkpoint.yaml"; }

up() {
	if ((EUID != 0)); then
		echo "The machines of the demo are made of Linux namespaces, which takes root: run sudo make demo" >&2
		exit 1
	fi
	mkdir -p "$home"
	cd "$home"
	trap 'ended $?' EXIT
	printf 'All of it is in %s. Each command is shown as you would type it.\n' "$home"
	management
	restricted
	workload
	addon
	package
	scale
	upgrade
	look
}

# ended says how to go on after what went wrong, or Ctrl-C.
ended() {
	(($1 == 0)) && return
	say "The demo did not get to its end. make demo goes on from here, make demo-down removes all traces."
}

management() {
	say "1. A management cluster from nothing: one spec, no Docker, no internet"
	write mgmt.yaml <<-YAML
	apiVersion: anywhere.eks.amazonaws.com/v1alpha1
	kind: Cluster
	metadata: {name: mgmt}
	spec:
	  kubernetesVersion: "1.36"
	  managementCluster: {name: mgmt} # itself
	  controlPlaneConfiguration: {count: 1}
	  datacenterRef: {kind: DockerDatacenterConfig, name: mgmt}
	---
	apiVersion: anywhere.eks.amazonaws.com/v1alpha1
	kind: DockerDatacenterConfig # machines of this host
	metadata: {name: mgmt}
	YAML
	if made mgmt; then
		echo "It is there already."
	else
		show mgmt.yaml
		run drover create cluster -f mgmt.yaml
	fi
	run export KUBECONFIG="$PWD/$mgmt"
	run drover get clusters
}

restricted() {
	say "2. Ann may have clusters in namespace team-a, and nothing else"
	run drover create user ann -n team-a -o ann.kubeconfig
	printf '\nThe credentials of machines are not for her:\n'
	refused drover kubectl --kubeconfig ann.kubeconfig get secret local-metal -n eksa-system
}

workload() {
	say "3. Ann makes a cluster: the same command, with her kubeconfig"
	if made dev; then
		echo "It is there already."
	else
		write dev.yaml <<-YAML
		apiVersion: anywhere.eks.amazonaws.com/v1alpha1
		kind: Cluster
		metadata: {name: dev, namespace: team-a}
		spec:
		  kubernetesVersion: "1.35"
		  managementCluster: {name: mgmt}
		  controlPlaneConfiguration: {count: 1}
		  workerNodeGroupConfigurations:
		  - name: md-0
		    count: 1
		  datacenterRef: {kind: DockerDatacenterConfig, name: dev}
		---
		apiVersion: anywhere.eks.amazonaws.com/v1alpha1
		kind: DockerDatacenterConfig
		metadata: {name: dev, namespace: team-a}
		YAML
		show dev.yaml
		run drover create cluster -f dev.yaml --kubeconfig ann.kubeconfig
	fi
	run drover kubectl --kubeconfig $dev get nodes
}

addon() {
	say "4. An add-on for every cluster of team-a, those to come included: a HelmChartProxy"
	write greeting.yaml <<-YAML
	apiVersion: addons.cluster.x-k8s.io/v1alpha1
	kind: HelmChartProxy
	metadata: {name: greeting, namespace: eksa-system}
	spec:
	  clusterSelector:
	    matchLabels: {clusters.anywhere.eks.amazonaws.com/cluster-namespace: team-a}
	  repoURL: oci://127.0.0.1:5000/catalogue # charts that the management cluster brings along; any registry will do
	  chartName: hello-eks-anywhere
	  releaseName: greeting
	  namespace: default
	  valuesTemplate: |
	    title: Hello from an add-on on {{ .Cluster.metadata.name }}
	  options: {wait: true}
	YAML
	show greeting.yaml
	run drover kubectl apply -f greeting.yaml
	run drover addon status greeting --wait 5m
	page greeting
}

# page reads the page of a Service of Ann's cluster.
page() { run drover kubectl --kubeconfig $dev get --raw "/api/v1/namespaces/default/services/http:$1:80/proxy/"; }

package() {
	say "5. Ann installs a package, from the signed bundle that her cluster came with"
	write notes.yaml <<-YAML
	apiVersion: packages.eks.amazonaws.com/v1alpha1
	kind: Package
	metadata: {name: notes, namespace: eksa-packages-dev}
	spec:
	  packageName: notes
	  config: |
	    title: Notes of team-a
	YAML
	run drover kubectl --kubeconfig ann.kubeconfig wait --for=condition=Ready --timeout=3m -n eksa-packages packagebundlecontroller/dev
	run drover list packages --cluster dev --kubeconfig ann.kubeconfig
	show notes.yaml
	run drover apply package -f notes.yaml --kubeconfig ann.kubeconfig --wait 5m
	run drover get packages --cluster dev --kubeconfig ann.kubeconfig
	page notes
}

scale() {
	say "6. One more worker: Ann changes the spec, and says so"
	if grep -q '"1.36"' dev.yaml; then
		echo "It is there already."
		return
	fi
	edit 's/^    count: 1$/    count: 2/'
	run drover upgrade cluster -f dev.yaml --kubeconfig ann.kubeconfig
}

upgrade() {
	say "7. From Kubernetes 1.35 to 1.36, the same way; what it would do first"
	edit 's/"1.35"/"1.36"/'
	run drover upgrade plan cluster -f dev.yaml --kubeconfig ann.kubeconfig
	run drover upgrade cluster -f dev.yaml --kubeconfig ann.kubeconfig
	run drover kubectl --kubeconfig $dev get nodes
}

look() {
	say "8. What to look at"
	run drover get clusters
	run drover get machines
	run drover describe cluster dev
	run drover why cluster dev
	printf '\n%s$ drover events cluster dev | tail%s\n' "$bold" "$plain"
	drover events cluster dev | tail
	run drover get packagebundlecontrollers
	run drover addon status
	run drover audit
	say "The demo is through, after $((SECONDS / 60)) min $((SECONDS % 60)) s."
	cat <<-TXT
	Everything runs in the background. To go on, as the administrator:

	  cd $home
	  export PATH=${PATH%%:*}:\$PATH DROVER_HOME=$DROVER_HOME DROVER_METAL_HOME=$DROVER_METAL_HOME
	  export KUBECONFIG=$KUBECONFIG
	  drover machine list                                      # what there is on this host; ssh and logs get at them
	  drover addon history greeting                            # and addon rollback goes back
	  drover support-bundle --help                             # evidence for somebody who is not here, without secrets
	  drover delete cluster -f dev.yaml --kubeconfig ann.kubeconfig
	  drover delete cluster -f mgmt.yaml                       # once it has no workload clusters

	Metrics are served by Service drover-metrics in namespace drover-system; a dashboard for them, and alerts,
	are in observability/ of the checkout. Specs, HelmChartProxies and Packages of your own work as these did:
	docs/guides/clusters.md, addons.md and packages.md tell more.

	make demo-down removes all traces.
	TXT
}

down() {
	[[ -e $home ]] || return 0
	if ! command -v drover >/dev/null; then
		echo "drover is gone and $home is still there: run make, then make demo-down" >&2
		exit 1
	fi
	# A plane that was there for the time being, if the creation was cut short.
	for plane in "$DROVER_HOME"-bootstrap/*; do
		[[ ! -e $plane ]] || run drover down --purge --home "$plane"
	done
	run drover metal purge --yes
	rm -rf "$home"/{mgmt,dev,plane-bootstrap} "$home"/{mgmt,dev,greeting,notes}.yaml{,.new} "$home"/ann.kubeconfig
	rmdir "$home"
}

case "${1:-up}" in
up | down) "${1:-up}" ;;
*) echo "usage: $0 [up|down]" >&2; exit 2 ;;
esac
