package guest

// KubeadmUpgrade is a script for bash, which upgrades the static Pods of a machine and the
// configuration of its kubelet to $version, with the programs in the directory $next. The first
// control plane machine upgrades the configuration of the cluster, too. Add-ons are those of the
// control plane provider. The checks left out are those that "kubeadm init" leaves out, and a Job
// that needs a node that is not drained. Nothing that it starts inherits the file 9, which is for
// the lock of the caller.
const KubeadmUpgrade = `
flags=(--ignore-preflight-errors=SystemVerification,Mem,NumCPU,CreateJob --skip-phases=addon)
if [ -d /etc/kubernetes/patches ]; then flags+=(--patches=/etc/kubernetes/patches); fi
if [ ! -f /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
  "$next/kubeadm" upgrade node "${flags[@]}" 9>&-
  exit
fi
configured=$("$next/kubectl" --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system get configmap kubeadm-config -o 'jsonpath={.data.ClusterConfiguration}' 9>&-)
if grep -qx "kubernetesVersion: $version" <<< "$configured"; then
  "$next/kubeadm" upgrade node "${flags[@]}" 9>&-
else
  "$next/kubeadm" upgrade apply "$version" --yes "${flags[@]}" 9>&-
fi
`
