package spec

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func packetProblems(s *anywherev1.PacketDatacenterConfigSpec) Violations {
	var problems Violations
	if s.ProjectID == "" {
		problems = one("spec.projectID", "give the id of the project that devices belong to", "is not set")
	}
	switch {
	case s.Metro == "" && s.Facility == "":
		problems = append(problems, one("spec.metro", "name the metro to make devices in", "is not set")...)
	case s.Metro != "" && s.Facility != "":
		problems = append(problems, one("spec.facility", "keep metro", "metro and facility exclude each other")...)
	}
	if s.CredentialsRef != nil && s.CredentialsRef.Name != "" && len(validation.IsDNS1123Subdomain(s.CredentialsRef.Name)) > 0 {
		problems = append(problems, one("spec.credentialsRef.name", "give the name of a Secret in "+anywherev1.SystemNamespace, "%q is not a valid name", printable(s.CredentialsRef.Name))...)
	}
	return problems
}

func machineProblems(s *anywherev1.PacketMachineConfigSpec) Violations {
	var problems Violations
	if s.MachineType == "" {
		problems = one("spec.machineType", "give the slug of a plan", "is not set")
	}
	if s.OS == "" {
		problems = append(problems, one("spec.os", "give the slug of an operating system, such as ubuntu_24_04", "is not set")...)
	}
	if cycles := []string{"", "hourly", "daily", "monthly", "yearly"}; !slices.Contains(cycles, s.BillingCycle) {
		problems = append(problems, one("spec.billingCycle", "use hourly, daily, monthly or yearly", "%q is not a billing cycle", printable(s.BillingCycle))...)
	}
	problems = append(problems, lineProblems(s.SSHKeys, "spec.sshKeys")...)
	problems = append(problems, lineProblems(s.Tags, "spec.tags")...)
	return append(problems, userProblems(s.Users)...)
}

// lineProblems wants each entry to be one line of text.
func lineProblems(entries []string, at string) Violations {
	var problems Violations
	for i, entry := range entries {
		if strings.TrimSpace(entry) == "" || strings.ContainsFunc(entry, unicode.IsControl) {
			problems = append(problems, one(fmt.Sprintf("%s[%d]", at, i), "give each an entry of its own, on one line", "is empty, or has more than one line")...)
		}
	}
	return problems
}

// userName is what Linux accepts as one.
var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func userProblems(users []anywherev1.UserConfiguration) Violations {
	var problems Violations
	seen := map[string]bool{}
	for i, user := range users {
		at := fmt.Sprintf("spec.users[%d]", i)
		switch {
		case !userName.MatchString(user.Name):
			problems = append(problems, one(at+".name", "use small letters, digits, dashes and underscores", "%q is not a valid name of a user", printable(user.Name))...)
		case seen[user.Name]:
			problems = append(problems, one(at+".name", "keep one of them, with all keys", "user %s is there twice", user.Name)...)
		}
		seen[user.Name] = true
		for j, key := range user.SSHAuthorizedKeys {
			if !isPublicKey(key) {
				problems = append(problems, one(fmt.Sprintf("%s.sshAuthorizedKeys[%d]", at, j), "give the one line of a file such as id_ed25519.pub", "is not a public key")...)
			}
		}
	}
	return problems
}

func isPublicKey(line string) bool {
	_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	return err == nil && len(rest) == 0 && !strings.ContainsAny(strings.TrimSpace(line), "\r\n")
}

func fluxProblems(s *anywherev1.FluxConfigSpec) Violations {
	problems := folderProblems(s.ClusterConfigPath, "spec.clusterConfigPath")
	problems = append(problems, branchProblems(s.Branch, "spec.branch")...)
	problems = append(problems, systemProblems(s.SystemNamespace, "spec.systemNamespace")...)
	switch {
	case s.Github == nil && s.Git == nil:
		return append(problems, one("spec", "add github or git", "must specify a provider, github or git")...)
	case s.Github != nil && s.Git != nil:
		return append(problems, one("spec", "keep one of them", "must specify only one provider, github or git")...)
	case s.Github != nil:
		return append(problems, githubProblems(s.Github.Owner, s.Github.Repository, "spec.github")...)
	}
	return append(problems, gitProblems(s.Git)...)
}

func gitOpsProblems(g *anywherev1.Github) Violations {
	const at = "spec.flux.github"
	problems := githubProblems(g.Owner, g.Repository, at)
	problems = append(problems, folderProblems(g.ClusterConfigPath, at+".clusterConfigPath")...)
	problems = append(problems, branchProblems(g.Branch, at+".branch")...)
	return append(problems, systemProblems(g.FluxSystemNamespace, at+".fluxSystemNamespace")...)
}

// repositoryName is what a part of an address at GitHub may be.
var repositoryName = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

func githubProblems(owner, repository, at string) Violations {
	var problems Violations
	if !repositoryName.MatchString(owner) {
		problems = one(at+".owner", "give the user or organisation that has the repository", "%q is not an owner", printable(owner))
	}
	if !repositoryName.MatchString(repository) {
		problems = append(problems, one(at+".repository", "give the name of the repository, without its owner", "%q is not a repository", printable(repository))...)
	}
	return problems
}

// gitProblems does not cite the address, which may hold a password.
func gitProblems(g *anywherev1.GitProviderConfig) Violations {
	var problems Violations
	if u, err := url.Parse(g.RepositoryURL); err != nil || u.Scheme != "ssh" || u.Host == "" || u.Path == "" {
		problems = one("spec.git.repositoryUrl", "write it as ssh://git@git.example.com/team/fleet.git", "is not an address of a repository that begins with ssh://")
	}
	if algorithms := []string{"", "rsa", "ecdsa", "ed25519"}; !slices.Contains(algorithms, g.SSHKeyAlgorithm) {
		problems = append(problems, one("spec.git.sshKeyAlgorithm", "use ecdsa, ed25519 or rsa", "%q is not an algorithm", printable(g.SSHKeyAlgorithm))...)
	}
	return problems
}

func folderProblems(folder, at string) Violations {
	if folder == "" || !path.IsAbs(folder) && path.Clean(folder) == folder && folder != ".." && !strings.HasPrefix(folder, "../") {
		return nil
	}
	return one(at, "use a path such as clusters/prod", "%q is not a folder of the repository", printable(folder))
}

// branchProblems follows Git's own rules for names of branches, as far as people break them.
func branchProblems(branch, at string) Violations {
	wrong := strings.Contains(branch, "..") || strings.Contains(branch, "//") || strings.Contains(branch, "@{") ||
		strings.HasPrefix(branch, "-") || strings.HasPrefix(branch, "/") || strings.HasSuffix(branch, "/") || strings.HasSuffix(branch, ".") ||
		strings.HasSuffix(branch, ".lock") || strings.ContainsAny(branch, " ~^:?*[\\") || strings.ContainsFunc(branch, unicode.IsControl)
	if !wrong {
		return nil
	}
	return one(at, "use a name such as main", "%q is not a name of a branch", printable(branch))
}

func systemProblems(namespace, at string) Violations {
	if namespace == "" || len(validation.IsDNS1123Label(namespace)) == 0 {
		return nil
	}
	return one(at, "use "+DefaultFluxSystem, "%q is not a namespace", printable(namespace))
}

func oidcProblems(s *anywherev1.OIDCConfigSpec) Violations {
	var problems Violations
	if s.ClientID == "" {
		problems = one("spec.clientId", "give what tokens are issued for", "is not set")
	}
	if u, err := url.Parse(s.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		problems = append(problems, one("spec.issuerUrl", "give an address that begins with https://", "is not the address of an issuer")...)
	}
	if len(s.RequiredClaims) > 1 {
		problems = append(problems, one("spec.requiredClaims", "keep one of them", "only one required claim is supported")...)
	}
	for i, claim := range s.RequiredClaims {
		if claim.Claim == "" || claim.Value == "" {
			problems = append(problems, one(fmt.Sprintf("spec.requiredClaims[%d]", i), "give both claim and value", "has no claim or no value")...)
		}
	}
	return problems
}
