package catalog

const gib = 1 << 30

var metros = []Metro{
	{"local", "This host", "ZZ", []string{"local1"}},
	{"am", "Amsterdam", "NL", []string{"am6", "ams1"}},
	{"at", "Atlanta", "US", []string{"at4", "atl1"}},
	{"ch", "Chicago", "US", []string{"ch3", "ord1"}},
	{"da", "Dallas", "US", []string{"da11", "da6", "dfw1", "dfw2"}},
	{"dc", "Washington DC", "US", []string{"dc13", "dc10", "iad1", "iad2"}},
	{"fr", "Frankfurt", "DE", []string{"fr2", "fr8", "fra1", "fra2"}},
	{"he", "Helsinki", "FI", []string{"he6"}},
	{"hk", "Hong Kong", "HK", []string{"hk2", "hkg1"}},
	{"la", "Los Angeles", "US", []string{"la4", "lax1"}},
	{"ld", "London", "GB", []string{"ld7", "lhr1"}},
	{"ma", "Manchester", "GB", []string{"ma5"}},
	{"md", "Madrid", "ES", []string{"md1", "md2"}},
	{"me", "Melbourne", "AU", []string{"me1", "me2"}},
	{"mi", "Miami", "US", []string{"mi1"}},
	{"ml", "Milan", "IT", []string{"ml5"}},
	{"mt", "Montreal", "CA", []string{"mt1"}},
	{"mx", "Mexico City", "MX", []string{"mx2"}},
	{"ny", "New York", "US", []string{"ny5", "ny7", "ewr1"}},
	{"os", "Osaka", "JP", []string{"os3"}},
	{"pa", "Paris", "FR", []string{"pa4", "mrs1"}},
	{"se", "Seattle", "US", []string{"se4", "sea1"}},
	{"sg", "Singapore", "SG", []string{"sg1", "sg4", "sg5", "sin3"}},
	{"sk", "Stockholm", "SE", []string{"sk2"}},
	{"sl", "Seoul", "KR", []string{"sl1"}},
	{"sp", "Sao Paulo", "BR", []string{"sp4"}},
	{"sv", "Silicon Valley", "US", []string{"sv15", "sv16", "sjc1"}},
	{"sy", "Sydney", "AU", []string{"sy4", "sy5", "syd2"}},
	{"tr", "Toronto", "CA", []string{"tr2", "yyz1"}},
	{"ty", "Tokyo", "JP", []string{"ty11", "nrt1"}},
}

// airports maps the first part of first-generation facility codes to metros. Cities without a metro
// belong to the nearest.
var airports = map[string]string{
	"ams": "am", "atl": "at", "bos": "ny", "den": "da", "dfw": "da", "ewr": "ny", "fra": "fr", "hkg": "hk", "iad": "dc", "iah": "da",
	"lax": "la", "lhr": "ld", "mrs": "pa", "msp": "ch", "nrt": "ty", "ord": "ch", "phx": "la", "pit": "dc", "sea": "se", "sin": "sg",
	"sjc": "sv", "syd": "sy", "yyz": "tr",
}

// plans maps well-known slugs to sizes that one host can carry, since their names only indicate
// which is larger. Disks hold twice the memory: the programs of a machine take 1 GiB, images and
// logs of Pods the rest. The plans server.* are those of servers whose owners name no plan.
var plans = []Plan{
	{"local.small", "Local small", "local.small", "baremetal", false, 2, 2 * gib, 4 * gib},
	{"local.medium", "Local medium", "local.medium", "baremetal", false, 4, 4 * gib, 8 * gib},
	{"local.large", "Local large", "local.large", "baremetal", false, 8, 8 * gib, 16 * gib},
	{"server.small", "Server, small", "server.small", "baremetal", false, 2, 2 * gib, 4 * gib},
	{"server.medium", "Server, medium", "server.medium", "baremetal", false, 4, 16 * gib, 32 * gib},
	{"server.large", "Server, large", "server.large", "baremetal", false, 16, 64 * gib, 128 * gib},
	{"a3.large.x86", "a3.large.x86", "a3.large.x86", "baremetal", false, 8, 16 * gib, 32 * gib},
	{"c2.medium.x86", "c2.medium.x86", "c2.medium.x86", "baremetal", true, 4, 4 * gib, 8 * gib},
	{"c3.small.x86", "c3.small.x86", "c3.small.x86", "baremetal", false, 2, 2 * gib, 4 * gib},
	{"c3.medium.x86", "c3.medium.x86", "c3.medium.x86", "baremetal", false, 4, 4 * gib, 8 * gib},
	{"c3.large.arm64", "c3.large.arm64", "c3.large.arm64", "baremetal", false, 8, 8 * gib, 16 * gib},
	{"f3.medium.x86", "f3.medium.x86", "f3.medium.x86", "baremetal", false, 4, 4 * gib, 8 * gib},
	{"f3.large.x86", "f3.large.x86", "f3.large.x86", "baremetal", false, 8, 8 * gib, 16 * gib},
	{"g2.large.x86", "g2.large.x86", "g2.large.x86", "baremetal", true, 8, 8 * gib, 16 * gib},
	{"m2.xlarge.x86", "m2.xlarge.x86", "m2.xlarge.x86", "baremetal", true, 8, 16 * gib, 32 * gib},
	{"m3.small.x86", "m3.small.x86", "m3.small.x86", "baremetal", false, 2, 4 * gib, 8 * gib},
	{"m3.large.x86", "m3.large.x86", "m3.large.x86", "baremetal", false, 8, 16 * gib, 32 * gib},
	{"n2.xlarge.x86", "n2.xlarge.x86", "n2.xlarge.x86", "baremetal", true, 8, 16 * gib, 32 * gib},
	{"n3.xlarge.x86", "n3.xlarge.x86", "n3.xlarge.x86", "baremetal", false, 8, 16 * gib, 32 * gib},
	{"s3.xlarge.x86", "s3.xlarge.x86", "s3.xlarge.x86", "baremetal", false, 8, 8 * gib, 16 * gib},
	{"t1.small.x86", "t1.small.x86", "t1.small.x86", "baremetal", true, 2, 2 * gib, 4 * gib},
	{"c1.small.x86", "c1.small.x86", "c1.small.x86", "baremetal", true, 2, 2 * gib, 4 * gib},
	{"c1.large.arm", "c1.large.arm", "c1.large.arm", "baremetal", true, 8, 8 * gib, 16 * gib},
	{"c1.xlarge.x86", "c1.xlarge.x86", "c1.xlarge.x86", "baremetal", true, 8, 16 * gib, 32 * gib},
	{"m1.xlarge.x86", "m1.xlarge.x86", "m1.xlarge.x86", "baremetal", true, 8, 16 * gib, 32 * gib},
	{"s1.large.x86", "s1.large.x86", "s1.large.x86", "baremetal", true, 4, 8 * gib, 16 * gib},
	{"x1.small.x86", "x1.small.x86", "x1.small.x86", "baremetal", true, 2, 2 * gib, 4 * gib},
	{"x2.xlarge.x86", "x2.xlarge.x86", "x2.xlarge.x86", "baremetal", true, 8, 16 * gib, 32 * gib},
}

// oldPlans are the first-generation names.
var oldPlans = map[string]string{
	"baremetal_0":  "t1.small.x86",
	"baremetal_1":  "c1.small.x86",
	"baremetal_1e": "x1.small.x86",
	"baremetal_2":  "m1.xlarge.x86",
	"baremetal_2a": "c1.large.arm",
	"baremetal_3":  "c1.xlarge.x86",
	"baremetal_s":  "s1.large.x86",
	"t1.small":     "t1.small.x86",
	"c1.small":     "c1.small.x86",
	"m1.xlarge":    "m1.xlarge.x86",
}

var systems = []OS{
	{"ubuntu_18_04", "Ubuntu 18.04 LTS", "ubuntu", "18.04"},
	{"ubuntu_20_04", "Ubuntu 20.04 LTS", "ubuntu", "20.04"},
	{"ubuntu_22_04", "Ubuntu 22.04 LTS", "ubuntu", "22.04"},
	{"ubuntu_24_04", "Ubuntu 24.04 LTS", "ubuntu", "24.04"},
	{"debian_10", "Debian 10", "debian", "10"},
	{"debian_11", "Debian 11", "debian", "11"},
	{"debian_12", "Debian 12", "debian", "12"},
	{"debian_13", "Debian 13", "debian", "13"},
	{"alma_8", "AlmaLinux 8", "alma", "8"},
	{"alma_9", "AlmaLinux 9", "alma", "9"},
	{"alpine_3", "Alpine 3", "alpine", "3"},
	{"centos_7", "CentOS 7", "centos", "7"},
	{"centos_8", "CentOS 8", "centos", "8"},
	{"rocky_8", "Rocky Linux 8", "rocky", "8"},
	{"rocky_9", "Rocky Linux 9", "rocky", "9"},
	{"flatcar_stable", "Flatcar Stable", "flatcar", "stable"},
	{"flatcar_beta", "Flatcar Beta", "flatcar", "beta"},
	{"nixos_23_05", "NixOS 23.05", "nixos", "23.05"},
	{"talos_v1", "Talos", "talos", "1"},
	{CustomIPXE, "Custom iPXE", "custom_ipxe", "1"},
}
