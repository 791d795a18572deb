#!/usr/bin/env bash
# A tour of Drover on machines of this host: an administrator creates a management cluster from nothing, a creator
# who sees no credentials creates a workload cluster, installs a package, adds a worker, upgrades Kubernetes and moves
# the cluster's spec to Git.
# The script prints each command before running it. You can interrupt it and run it again: it skips what is done.
# "hack/demo.sh down" removes everything that it created.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD

# DEMO_HOME is where everything goes, DEMO_BIN where drover is.
export PATH="${DEMO_BIN:-$PWD/bin}:$PATH"
home="$(realpath -m "${DEMO_HOME:-.demo}")"
export DROVER_HOME="$home/plane" DROVER_METAL_HOME="$home/metal"
unset KUBECONFIG

# All clusters start with one Kubernetes minor. The other one and Flux are compiled in the background.
first=1.35 second=1.36
builder="" building=""

mgmt=mgmt/mgmt-eks-a-cluster.kubeconfig
dev=dev/dev-eks-a-cluster.kubeconfig

bold="" plain=""
[[ ! -t 1 ]] || { bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true); }
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
show() { printf '\n%s$ cat %s%s\n' "$bold" "$1" "$plain"; cat "$1"; }

# edit changes the spec of the workload cluster.
edit() { printf "\n%s\$ sed -i '%s' dev.yaml%s\n" "$bold" "$1" "$plain"; sed -i "$1" dev.yaml; }

# denied runs a command that must fail.
denied() {
	if run "$@"; then
		echo "The command should have been denied." >&2
		return 1
	fi
}

# write puts standard input into a file.
write() { cat >"$1.new" && mv "$1.new" "$1"; }

# created reports whether a cluster was created completely.
created() { [[ -e $1/$1-eks-a-cluster.kubeconfig ]] && ! grep -qs '^command: create' "$1/generated/$1-checkpoint.yaml"; }

check() {
	((EUID == 0)) || { echo "Running machines on this host requires root. Try: sudo make demo" >&2; exit 1; }
}

up() {
	check
	mkdir -p "$home"
	cd "$home"
	trap 'ended $?' EXIT
	printf 'All files are in %s.\n' "$home"
	compile "Kubernetes $second" --kubernetes $second kube node
	management
	access
	workload
	addon
	package
	scale
	upgrade
	gitops
	inspect
}

# ended stops the background build, and explains how to continue after a failure or Ctrl-C.
ended() {
	[[ ! $builder ]] || kill "$builder" 2>/dev/null || true
	(($1 == 0)) && return
	say "The demo did not finish. Run make demo to continue, or make demo-down to remove everything."
}

# compile builds what a later step needs while the demo waits for machines. The build ends with this script, however
# that ends, and the next one continues it.
compile() {
	command -v go >/dev/null || return 0
	building=$1
	shift
	(cd "$checkout" && exec nice -n 19 go run ./hack/build --parent $$ --interval 5s "$@") >build.log 2>&1 </dev/null &
	builder=$!
}

# await_compiled waits for compile and shows its progress.
await_compiled() {
	local line shown="" next=0
	[[ $builder ]] || return 0
	while kill -0 "$builder" 2>/dev/null; do
		line=$(tail -n 1 build.log)
		if [[ $line != "$shown" ]] && { [[ -t 1 ]] || ((SECONDS >= next)); }; then
			[[ ! -t 1 ]] || printf '\r\033[K'
			printf 'Waiting for %s. %s' "$building" "$line"
			[[ -t 1 ]] || echo
			shown=$line next=$((SECONDS + 30))
		fi
		sleep 1
	done
	[[ ! -t 1 || ! $shown ]] || printf '\r\033[K'
	wait "$builder" || { cat build.log >&2; return 1; }
	builder=""
}

management() {
	say "1. The administrator creates a management cluster: one spec, no Docker, no internet"
	write mgmt.yaml <<-YAML
	apiVersion: anywhere.eks.amazonaws.com/v1alpha1
	kind: Cluster
	metadata: {name: mgmt}
	spec:
	  kubernetesVersion: "1.35"
	  managementCluster: {name: mgmt} # itself
	  controlPlaneConfiguration: {count: 1}
	  datacenterRef: {kind: DockerDatacenterConfig, name: mgmt}
	---
	apiVersion: anywhere.eks.amazonaws.com/v1alpha1
	kind: DockerDatacenterConfig # machines of this host
	metadata: {name: mgmt}
	YAML
	if created mgmt; then
		echo "Already created."
	else
		show mgmt.yaml
		run drover create cluster -f mgmt.yaml
	fi
	run export KUBECONFIG="$PWD/$mgmt"
	run drover get clusters
}

access() {
	say "2. The administrator lets a creator have clusters in namespace team-a, and nothing else"
	cat <<-TXT
	Machines of this host share its kernel, and a creator is root on them. --local-machines therefore trusts the
	creator with root on this host. Without it, the creator can use only machines elsewhere.
	TXT
	run drover create user creator -n team-a --local-machines -o creator.kubeconfig
	printf '\nThe credentials of machines stay hidden from the creator:\n'
	denied drover kubectl --kubeconfig creator.kubeconfig get secret local-metal -n eksa-system
}

workload() {
	say "3. The creator creates a workload cluster: the same command with the creator's kubeconfig"
	if created dev; then
		echo "Already created."
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
		    upgradeRolloutStrategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}} # replaces two machines at a time
		  datacenterRef: {kind: DockerDatacenterConfig, name: dev}
		---
		apiVersion: anywhere.eks.amazonaws.com/v1alpha1
		kind: DockerDatacenterConfig
		metadata: {name: dev, namespace: team-a}
		YAML
		show dev.yaml
		run drover create cluster -f dev.yaml --kubeconfig creator.kubeconfig
	fi
	run drover kubectl --kubeconfig $dev get nodes
}

addon() {
	say "4. The administrator installs an add-on on every cluster of team-a, including future ones: a HelmChartProxy"
	write greeting.yaml <<-YAML
	apiVersion: addons.cluster.x-k8s.io/v1alpha1
	kind: HelmChartProxy
	metadata: {name: greeting, namespace: eksa-system}
	spec:
	  clusterSelector:
	    matchLabels: {clusters.anywhere.eks.amazonaws.com/cluster-namespace: team-a}
	  repoURL: oci://127.0.0.1:5000/catalogue # charts that come with the management cluster; any registry works
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

# page requests the page of a Service of the workload cluster.
page() { run drover kubectl --kubeconfig $dev get --raw "/api/v1/namespaces/default/services/http:$1:80/proxy/"; }

package() {
	say "5. The creator installs a package from the signed bundle that comes with the cluster"
	write notes.yaml <<-YAML
	apiVersion: packages.eks.amazonaws.com/v1alpha1
	kind: Package
	metadata: {name: notes, namespace: eksa-packages-dev}
	spec:
	  packageName: notes
	  config: |
	    title: Notes of team-a
	YAML
	run drover kubectl --kubeconfig creator.kubeconfig wait --for=condition=Ready --timeout=3m -n eksa-packages packagebundlecontroller/dev
	run drover list packages --cluster dev --kubeconfig creator.kubeconfig
	show notes.yaml
	run drover apply package -f notes.yaml --kubeconfig creator.kubeconfig --wait 5m
	run drover get packages --cluster dev --kubeconfig creator.kubeconfig
	page notes
}

scale() {
	say "6. The creator adds a worker: change the spec, then apply it"
	if grep -q "\"$second\"" dev.yaml; then
		echo "Already done."
		return
	fi
	edit 's/^    count: 1$/    count: 2/'
	run drover upgrade cluster -f dev.yaml --kubeconfig creator.kubeconfig
}

upgrade() {
	say "7. The creator upgrades Kubernetes from $first to $second, after a look at the plan"
	if grep -q gitOpsRef dev.yaml; then
		echo "Already done."
		return
	fi
	edit "s/\"$first\"/\"$second\"/"
	run drover upgrade plan cluster -f dev.yaml --kubeconfig creator.kubeconfig
	await_compiled
	compile "the GitOps controllers" flux
	run drover upgrade cluster -f dev.yaml --kubeconfig creator.kubeconfig
	run drover kubectl --kubeconfig $dev get nodes
}

gitops() {
	say "8. The creator's spec moves to Git: from now on, each change is a commit"
	serve_git
	if [[ -e git/done ]]; then
		echo "Already done."
		return
	fi
	await_compiled
	local url spec=clusters/mgmt/workload-clusters/dev/eksa-cluster.yaml
	url=ssh://root@$(git_address)$PWD/git/fleet.git
	run export EKSA_GIT_PRIVATE_KEY="$PWD/git/key" EKSA_GIT_KNOWN_HOSTS="$PWD/git/known_hosts"
	run drover gitops enable --url "$url" --path clusters/mgmt -n team-a
	printf '\nThe creator names the repository and needs no key: Drover commits what its creator may change.\n'
	grep -q gitOpsRef dev.yaml || {
		edit 's/^  datacenterRef:/  gitOpsRef: {kind: FluxConfig, name: fleet}\n&/'
		write fluxconfig.yaml <<-YAML
		---
		apiVersion: anywhere.eks.amazonaws.com/v1alpha1
		kind: FluxConfig
		metadata: {name: fleet, namespace: team-a}
		spec: {clusterConfigPath: clusters/mgmt, git: {repositoryUrl: "$url"}}
		YAML
		show fluxconfig.yaml
		cat fluxconfig.yaml >>dev.yaml
	}
	run drover upgrade cluster -f dev.yaml --kubeconfig creator.kubeconfig
	run export GIT_SSH_COMMAND="ssh -i $PWD/git/key -o UserKnownHostsFile=$PWD/git/known_hosts"
	rm -rf checkout
	run git clone --quiet "$url" checkout
	run git -C checkout log --format='%h %an: %s'
	run sed -i 's/count: 2$/count: 1/' "checkout/$spec"
	(cd checkout && run drover gitops diff)
	if ! git -C checkout diff --quiet; then
		run git -C checkout -c user.name=creator -c user.email=creator@example.com commit --quiet --all -m "Remove a worker of dev"
		run git -C checkout push --quiet
	fi
	run drover kubectl wait -n eksa-system machinedeployment/dev-md-0 --for=jsonpath='{.status.replicas}'=1 --timeout=5m
	run drover gitops status
	touch git/done
}

# serve_git serves a repository with OpenSSH and git-shell where machines reach it. Any Git server works. A push makes
# Flux fetch, as the webhook of a Git server does.
serve_git() {
	mkdir -p git /run/sshd
	[[ -e git/host ]] || ssh-keygen -q -t ed25519 -N '' -C git -f git/host
	[[ -e git/key ]] || ssh-keygen -q -t ed25519 -N '' -C fleet -f git/key
	[[ -e git/fleet.git ]] || git init --quiet --bare --initial-branch=main git/fleet.git
	write git/fleet.git/hooks/post-receive <<-SH
	#!/bin/sh
	exec '$(command -v drover)' kubectl --kubeconfig '$PWD/$mgmt' annotate --overwrite gitrepository flux-system \
		-n flux-system reconcile.fluxcd.io/requestedAt="\$(date +%s)"
	SH
	chmod +x git/fleet.git/hooks/post-receive
	local address
	address=$(git_address)
	echo "[${address%:*}]:${address#*:} $(cut -d' ' -f1,2 git/host.pub)" | write git/known_hosts
	echo "restrict,command=\"git-shell -c \\\"\$SSH_ORIGINAL_COMMAND\\\"\" $(cat git/key.pub)" | write git/authorized_keys
	write git/sshd_config <<-CONFIG
	ListenAddress $address
	HostKey $PWD/git/host
	AuthorizedKeysFile $PWD/git/authorized_keys
	PidFile $PWD/git/sshd.pid
	PermitRootLogin forced-commands-only
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	StrictModes no
	UsePAM no
	CONFIG
	git_runs || /usr/sbin/sshd -f git/sshd_config
}

# git_address prints the address of this host on the bridge of its machines, and the port of the Git server.
git_address() {
	local machine
	machine=$(drover kubectl --kubeconfig $mgmt get nodes -o jsonpath='{.items[0].status.addresses[?(@.type=="InternalIP")].address}')
	echo "$(ip -4 route get "$machine" | sed -n 's/.* src \([0-9.]*\).*/\1/p'):2222"
}

# git_runs reports whether the Git server runs.
git_runs() { [[ -s git/sshd.pid && $(cat "/proc/$(cat git/sshd.pid)/comm" 2>/dev/null) == sshd ]]; }

inspect() {
	say "9. The administrator inspects the result"
	run drover get clusters
	run drover get machines
	run drover describe cluster dev
	run drover why cluster dev
	printf '\n%s$ drover events cluster dev | tail%s\n' "$bold" "$plain"
	drover events cluster dev | tail
	run drover get packagebundlecontrollers
	run drover addon status
	run drover audit
	say "Demo finished in $((SECONDS / 60))m$((SECONDS % 60))s."
	cat <<-TXT
	The clusters keep running in the background. To continue as the administrator:

	  cd $home
	  export PATH=${PATH%%:*}:\$PATH DROVER_HOME=$DROVER_HOME DROVER_METAL_HOME=$DROVER_METAL_HOME
	  export KUBECONFIG=$KUBECONFIG
	  drover machine list                                      # machines of this host; see also machine ssh and logs
	  drover addon history greeting                            # addon rollback returns to an earlier revision
	  drover support-bundle --help                             # collect diagnostics without secrets
	  drover delete cluster -f dev.yaml --kubeconfig creator.kubeconfig # asks first; --yes skips that
	  drover delete cluster -f mgmt.yaml                       # requires that it has no workload clusters

	Service drover-metrics in namespace drover-system serves metrics; observability/ in the checkout has a dashboard
	and alerts. To use your own specs, HelmChartProxies and Packages, see docs/guides/use-existing-manifests.md.

	make demo-down removes everything.
	TXT
}

down() {
	[[ -e $home ]] || return 0
	if ! command -v drover >/dev/null; then
		echo "$home still exists, but drover does not. Try: make drover demo-down" >&2
		exit 1
	fi
	# A bootstrap plane exists only if creating the management cluster was interrupted.
	for plane in "$DROVER_HOME"-bootstrap/*; do
		[[ ! -e $plane ]] || run drover down --purge --home "$plane"
	done
	(cd "$home" && if git_runs; then kill "$(cat git/sshd.pid)"; fi)
	run drover metal purge --yes
	rm -rf "$home"/{mgmt,dev,plane-bootstrap,git,checkout} "$home"/{mgmt,dev,greeting,notes,fluxconfig}.yaml{,.new} \
		"$home"/{creator.kubeconfig,build.log}
	rmdir "$home"
}

case "${1:-up}" in
check | up | down) "${1:-up}" ;;
*) echo "usage: $0 [check|up|down]" >&2; exit 2 ;;
esac
