has() { command -v "$1" >/dev/null 2>&1; }
PATH=$PATH:/usr/sbin:/sbin
echo "time=$(date +%s)"
echo "arch=$(uname -m)"
echo "kernel=$(uname -r)"
( . /etc/os-release 2>/dev/null; echo "os_id=$ID"; echo "os_version=$VERSION_ID"; echo "os=$PRETTY_NAME" )
has systemctl && echo systemctl=yes
echo "cpus=$(nproc)"
echo "memory_kib=$(sed -n 's/^MemTotal: *\([0-9]*\) .*/\1/p' /proc/meminfo)"
df -Pk /var/lib | sed -n '2s/^[^ ]* *\([0-9]*\) *[0-9]* *\([0-9]*\) .*/disk_kib=\1\
free_kib=\2/p'
echo "machine_id=$(cat /etc/machine-id 2>/dev/null)"
link=$(ip -4 route show default 2>/dev/null | sed -n '1s/.* dev \([^ ]*\).*/\1/p')
echo "link=$link"
echo "gateway=$(ip -4 route show default 2>/dev/null | sed -n '1s/.* via \([^ ]*\) .*/\1/p')"
echo "address=$(ip -4 -o addr show dev "$link" scope global 2>/dev/null | sed -n '1s/.* inet \([^ ]*\) .*/\1/p')"
echo "mac=$(cat "/sys/class/net/$link/address" 2>/dev/null)"
sed -n '2,$s/^\([^ 	]*\).*/swap=\1/p' /proc/swaps
for m in overlay nf_conntrack; do
	[ -d "/sys/module/$m" ] || grep -qw "$m" /proc/filesystems || modprobe -n -q "$m" 2>/dev/null || { [ $m = nf_conntrack ] && [ -d /proc/sys/net/netfilter ]; } || echo "missing_module=$m"
done
for t in mount umount ip sha256sum timeout; do has $t || echo "missing_tool=$t"; done
has nft || has iptables || echo "missing_tool=nft"
for u in containerd docker crio k3s k3s-agent k0scontroller k0sworker rke2-server rke2-agent kubelet microk8s; do
	[ "$(systemctl is-active $u 2>/dev/null)" = active ] && echo "service=$u"
done
sed -n 's/^ *[0-9]*: [0-9A-F]*:\([0-9A-F]\{4\}\) [0-9A-F:]* 0A .*/\1/p' /proc/net/tcp /proc/net/tcp6 2>/dev/null | sort -u | while read -r p; do echo "listen=$((0x$p))"; done
for f in /etc/kubernetes/admin.conf /etc/kubernetes/kubelet.conf /var/lib/etcd/member /var/lib/kubelet/config.yaml /var/lib/rancher /var/lib/k0s; do
	[ -e $f ] && echo "remnant=$f"
done
sed -n 's/.*"device":"\([^"]*\)".*/device=\1/p' /var/lib/drover-server/state.json 2>/dev/null
true
