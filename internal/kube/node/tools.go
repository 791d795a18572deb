package node

import "github.com/drover-dev/drover/internal/kube/node/host"

// machineTools are the tools of the host on every machine.
func machineTools() host.Request {
	return host.Request{
		Required: []string{
			"bash", "sh", "mount", "umount", "awk", "sed", "grep", "tar", "gzip", "find", "xargs", "ps", "sysctl", "getent",
			"ip", "ss", "nft", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore",
			"conntrack", "ethtool", "socat", "modprobe", "sshd", "ssh-keygen", "curl", "jq", "ping",
		},
		Optional: []string{
			// coreutils
			"[", "arch", "b2sum", "base32", "base64", "basename", "cat", "chgrp", "chmod", "chown", "chroot", "cksum", "comm", "cp", "csplit",
			"cut", "date", "dd", "df", "dir", "dirname", "du", "echo", "env", "expand", "expr", "factor", "false", "fmt", "fold", "groups",
			"head", "hostid", "id", "install", "join", "link", "ln", "logname", "ls", "md5sum", "mkdir", "mkfifo", "mknod", "mktemp", "mv",
			"nice", "nl", "nohup", "nproc", "numfmt", "od", "paste", "pathchk", "pr", "printenv", "printf", "pwd", "readlink", "realpath",
			"rm", "rmdir", "seq", "sha1sum", "sha256sum", "sha512sum", "shred", "shuf", "sleep", "sort", "split", "stat", "stdbuf", "stty",
			"sum", "sync", "tac", "tail", "tee", "test", "timeout", "touch", "tr", "true", "truncate", "tsort", "tty", "uname", "unexpand",
			"uniq", "unlink", "users", "wc", "who", "whoami", "yes",
			// util-linux, procps and similar
			"blkid", "blockdev", "dmesg", "fallocate", "findmnt", "flock", "getopt", "hostname", "ionice", "kill", "logger", "losetup",
			"lsblk", "lscpu", "mkfs", "mkswap", "more", "mountpoint", "nsenter", "prlimit", "rev", "runuser", "setpriv", "setsid", "su",
			"swapoff", "swapon", "taskset", "unshare", "uuidgen", "wipefs", "free", "pgrep", "pidof", "pkill", "pmap", "top", "uptime",
			"vmstat", "w", "watch", "lsmod", "insmod", "rmmod", "depmod", "modinfo", "mkfs.ext4", "mke2fs", "e2fsck", "tune2fs", "mkfs.xfs",
			// Text, archives, network, certificates.
			"egrep", "fgrep", "gawk", "mawk", "bunzip2", "bzip2", "gunzip", "xz", "unxz", "zcat", "zstd", "less", "vi", "nano", "diff", "cmp",
			"wget", "openssl", "arping", "dig", "host", "nslookup", "tcpdump", "nc", "bridge", "tc", "rtmon", "ipset", "ipvsadm", "ebtables",
			"arptables", "iptables-nft", "iptables-legacy", "iptables-nft-save", "iptables-legacy-save", "iptables-nft-restore",
			"iptables-legacy-restore", "ip6tables-nft", "ip6tables-legacy", "ip6tables-nft-save", "ip6tables-legacy-save",
			"ip6tables-nft-restore", "ip6tables-legacy-restore", "iptables-apply", "ssh", "scp", "sftp", "chpasswd", "strace", "lsof", "tini",
		},
		Globs: append(libraryGlobs(),
			"/usr/lib/openssh/*", "/usr/libexec/openssh/*", "/lib/terminfo/[lxsv]/*", "/usr/share/terminfo/[lxsv]/*",
			"/usr/lib/locale/C.utf8/*", "/usr/lib/locale/C.utf8/*/*", "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
			"/etc/ssl/openssl.cnf", "/etc/services", "/etc/protocols", "/etc/ethertypes", "/etc/login.defs",
		),
	}
}

// CheckTools reports which programs of the host are missing for an image.
func CheckTools() error {
	_, err := host.Collect(host.Request{Required: machineTools().Required})
	return err
}

// proxyTools are the tools that kube-proxy uses in either mode.
func proxyTools() host.Request {
	return host.Request{
		Required: []string{"nft", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "conntrack"},
		Optional: []string{
			"iptables-nft", "iptables-legacy", "iptables-nft-save", "iptables-legacy-save", "iptables-nft-restore", "iptables-legacy-restore",
			"ip6tables-nft", "ip6tables-legacy", "ip6tables-nft-save", "ip6tables-legacy-save", "ip6tables-nft-restore", "ip6tables-legacy-restore",
			"ipset", "modprobe",
		},
		Globs: append(libraryGlobs(), "/etc/services", "/etc/protocols"),
	}
}

// shellTools are the tools in ToolsImage.
func shellTools() host.Request {
	return host.Request{
		Required: []string{"bash", "sh", "socat", "getent", "ip", "grep", "sed", "awk", "curl", "ping"},
		Optional: []string{
			"cat", "date", "echo", "env", "head", "hostname", "id", "ls", "mkdir", "nproc", "printf", "rm", "seq", "sleep", "sort", "tail", "tee", "timeout",
			"touch", "true", "false", "uname", "wc", "ps", "wget", "jq", "dig", "host", "nslookup", "ss",
		},
		Globs: append(libraryGlobs(), "/etc/services", "/etc/protocols"),
	}
}

// libraryGlobs are libraries that are loaded by name at run time, so that no file depends on them.
func libraryGlobs() []string {
	return []string{
		"/usr/lib/*/xtables/*.so", "/usr/lib64/xtables/*.so",
		"/usr/lib/*/libnss_files.so.2", "/usr/lib/*/libnss_dns.so.2", "/usr/lib64/libnss_files.so.2", "/usr/lib64/libnss_dns.so.2",
	}
}
