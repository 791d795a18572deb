# Runs in a machine, as root: bash -c "$script" etcd VERB ARGUMENT…
# Every verb can be repeated, also after it was interrupted.
set -euo pipefail

manifests=/etc/kubernetes/manifests
stash=/etc/kubernetes/drover-restore

fail() { echo "$*" >&2; exit 1; }

running() {
  local names
  names=$(cat /proc/[0-9]*/comm 2>/dev/null || true)
  grep -qxE "$1" <<<"$names"
}

# await TRIES COMMAND…: repeats a command twice a second until it succeeds.
await() {
  local tries=$1
  shift
  for ((i = 0; i < tries; i++)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.5
  done
  return 1
}

stopped() { ! running 'etcd|kube-apiserver'; }

# end_servers ends API servers, which try to reach etcd for half a minute otherwise.
end_servers() {
  for process in /proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2>/dev/null)" = kube-apiserver ]; then kill -KILL "${process#/proc/}" 2>/dev/null || true; fi
  done
}

stopped_at_last() { end_servers; stopped; }

serving() {
  local code
  code=$(curl -ks -o /dev/null -w '%{http_code}' "https://127.0.0.1:$1/readyz")
  [ "$code" = 200 ] || [ "$code" = 401 ]
}

back() { if [ -e "$stash/$1.yaml" ]; then mv "$stash/$1.yaml" "$manifests/$1.yaml"; fi; }

case $1 in
show) # POD: prints the manifest of a static Pod
  for file in "$manifests/$2.yaml" "$stash/$2.yaml"; do
    if [ -e "$file" ]; then exec cat "$file"; fi
  done
  fail "there is no static Pod $2: is this a control plane machine of kubeadm?"
  ;;
stop) # takes the control plane and etcd away from the kubelet
  mkdir -p "$stash"
  for pod in kube-scheduler kube-controller-manager kube-apiserver etcd; do
    if [ -e "$manifests/$pod.yaml" ]; then mv "$manifests/$pod.yaml" "$stash/$pod.yaml"; fi
  done
  systemctl start kubelet
  await 10 stopped || await 240 stopped_at_last || fail "etcd or kube-apiserver is still running after two minutes: check the kubelet"
  ;;
restore) # ID DIRECTORY AHEAD FLAG…: replaces the data by a snapshot on standard input
  id=$2 data=$3 ahead=$4
  shift 4
  stopped || fail "etcd is running"
  mkdir -p "$data"
  rm -rf "$data/restored-$id" "$data/restored-$id.db"
  cat >"$data/restored-$id.db"
  etcdutl snapshot restore "$data/restored-$id.db" --data-dir "$data/restored-$id" \
    --initial-cluster-token "drover-$id" --bump-revision "$ahead" --mark-compacted "$@"
  rm "$data/restored-$id.db"
  if [ -e "$data/member" ] && [ ! -e "$data/before-restore-$id" ]; then mv "$data/member" "$data/before-restore-$id"; fi
  rm -rf "$data/member"
  mv "$data/restored-$id/member" "$data/member"
  rm -rf "$data/restored-$id"
  sync
  ;;
start-etcd) back etcd ;;
await-etcd) # URL of the metrics
  await 360 curl -fs "$2/readyz" || fail "etcd is not ready after three minutes"
  ;;
start-api)
  for pod in kube-apiserver kube-controller-manager kube-scheduler; do back "$pod"; done
  ;;
await-api) # PORT
  await 360 serving "$2" || fail "kube-apiserver is not ready after three minutes"
  ;;
restart-kubelet) systemctl restart kubelet ;;
finish) # ID DIRECTORY: keeps the data from before this restore only
  for old in "$3"/before-restore-*; do
    if [ "$old" != "$3/before-restore-$2" ]; then rm -rf "$old"; fi
  done
  if [ -d "$stash" ]; then rmdir "$stash"; fi
  ;;
*) fail "unknown verb $1" ;;
esac
