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
		problems = violation("spec.projectID", "set it to the ID of the project of the devices", "is not set")
	}
	switch {
	case s.Metro == "" && s.Facility == "":
		problems = append(problems, violation("spec.metro", "set it to the metro of the devices", "is not set")...)
	case s.Metro != "" && s.Facility != "":
		problems = append(problems, violation("spec.facility", "remove facility", "metro and facility are mutually exclusive")...)
	}
	if s.CredentialsRef != nil && s.CredentialsRef.Name != "" && len(validation.IsDNS1123Subdomain(s.CredentialsRef.Name)) > 0 {
		problems = append(problems, violation("spec.credentialsRef.name", "use the name of a Secret in "+anywherev1.SystemNamespace, "%q is not a valid name", printable(s.CredentialsRef.Name))...)
	}
	return problems
}

func machineProblems(s *anywherev1.PacketMachineConfigSpec) Violations {
	var problems Violations
	if s.MachineType == "" {
		problems = violation("spec.machineType", "set it to the slug of a plan", "is not set")
	}
	if s.OS == "" {
		problems = append(problems, violation("spec.os", "set it to the slug of an operating system, such as ubuntu_24_04", "is not set")...)
	}
	if cycles := []string{"", "hourly", "daily", "monthly", "yearly"}; !slices.Contains(cycles, s.BillingCycle) {
		problems = append(problems, violation("spec.billingCycle", "use hourly, daily, monthly or yearly", "%q is not a billing cycle", printable(s.BillingCycle))...)
	}
	problems = append(problems, lineProblems(s.SSHKeys, "spec.sshKeys")...)
	problems = append(problems, lineProblems(s.Tags, "spec.tags")...)
	return append(problems, userProblems(s.Users)...)
}

// lineProblems requires each entry to be one line.
func lineProblems(entries []string, at string) Violations {
	var problems Violations
	for i, entry := range entries {
		if strings.TrimSpace(entry) == "" || strings.ContainsFunc(entry, unicode.IsControl) {
			problems = append(problems, violation(fmt.Sprintf("%s[%d]", at, i), "use one line per entry", "is empty or has several lines")...)
		}
	}
	return problems
}

// userName is the format of user names on Linux.
var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func userProblems(users []anywherev1.UserConfiguration) Violations {
	var problems Violations
	seen := map[string]bool{}
	for i, user := range users {
		at := fmt.Sprintf("spec.users[%d]", i)
		switch {
		case !userName.MatchString(user.Name):
			problems = append(problems, violation(at+".name", "use lower-case letters, digits, dashes and underscores", "%q is not a valid user name", printable(user.Name))...)
		case seen[user.Name]:
			problems = append(problems, violation(at+".name", "keep one of them, with all keys", "user %s is listed more than once", user.Name)...)
		}
		seen[user.Name] = true
		for j, key := range user.SSHAuthorizedKeys {
			if !isPublicKey(key) {
				problems = append(problems, violation(fmt.Sprintf("%s.sshAuthorizedKeys[%d]", at, j), "use the content of a file such as id_ed25519.pub", "is not a public key")...)
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
		return append(problems, violation("spec", "add github or git", "must specify a provider, github or git")...)
	case s.Github != nil && s.Git != nil:
		return append(problems, violation("spec", "keep one of them", "must specify only one provider, github or git")...)
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

// repositoryName is the format of owners and repositories on GitHub.
var repositoryName = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

func githubProblems(owner, repository, at string) Violations {
	var problems Violations
	if !repositoryName.MatchString(owner) {
		problems = violation(at+".owner", "set it to the user or organization that owns the repository", "%q is not a valid owner", printable(owner))
	}
	if !repositoryName.MatchString(repository) {
		problems = append(problems, violation(at+".repository", "set it to the name of the repository without the owner", "%q is not a valid repository name", printable(repository))...)
	}
	return problems
}

// gitProblems does not quote the URL, because it may contain a password.
func gitProblems(g *anywherev1.GitProviderConfig) Violations {
	var problems Violations
	u, err := url.Parse(g.RepositoryURL)
	switch schemes := []string{"ssh", "https"}; {
	case err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" || u.Path == "":
		problems = violation("spec.git.repositoryUrl", "write it as ssh://git@git.example.com/team/fleet.git", "is not an ssh:// or https:// URL of a repository")
	case u.Scheme == "https" && u.User != nil:
		problems = violation("spec.git.repositoryUrl", "remove them; an administrator connects the repository with drover gitops enable", "contains credentials")
	}
	if algorithms := []string{"", "rsa", "ecdsa", "ed25519"}; !slices.Contains(algorithms, g.SSHKeyAlgorithm) {
		problems = append(problems, violation("spec.git.sshKeyAlgorithm", "use ecdsa, ed25519 or rsa", "%q is not a supported algorithm", printable(g.SSHKeyAlgorithm))...)
	}
	return problems
}

func folderProblems(folder, at string) Violations {
	if folder == "" || !path.IsAbs(folder) && path.Clean(folder) == folder && folder != ".." && !strings.HasPrefix(folder, "../") {
		return nil
	}
	return violation(at, "use a path such as clusters/prod", "%q is not a directory in the repository", printable(folder))
}

// branchProblems applies the rules of Git for branch names that are likely to be violated.
func branchProblems(branch, at string) Violations {
	wrong := strings.Contains(branch, "..") || strings.Contains(branch, "//") || strings.Contains(branch, "@{") ||
		strings.HasPrefix(branch, "-") || strings.HasPrefix(branch, "/") || strings.HasSuffix(branch, "/") || strings.HasSuffix(branch, ".") ||
		strings.HasSuffix(branch, ".lock") || strings.ContainsAny(branch, " ~^:?*[\\") || strings.ContainsFunc(branch, unicode.IsControl)
	if !wrong {
		return nil
	}
	return violation(at, "use a name such as main", "%q is not a valid branch name", printable(branch))
}

func systemProblems(namespace, at string) Violations {
	if namespace == "" || len(validation.IsDNS1123Label(namespace)) == 0 {
		return nil
	}
	return violation(at, "use "+DefaultFluxSystem, "%q is not a valid namespace", printable(namespace))
}

func oidcProblems(s *anywherev1.OIDCConfigSpec) Violations {
	var problems Violations
	if s.ClientID == "" {
		problems = violation("spec.clientId", "set it to the client that tokens are issued for", "is not set")
	}
	if !isIssuer(s.IssuerURL) {
		problems = append(problems, violation("spec.issuerUrl", "use a URL that begins with https://", "is not a valid issuer URL")...)
	}
	if len(s.RequiredClaims) > 1 {
		problems = append(problems, violation("spec.requiredClaims", "keep one of them", "only one required claim is supported")...)
	}
	for i, claim := range s.RequiredClaims {
		if claim.Claim == "" || claim.Value == "" {
			problems = append(problems, violation(fmt.Sprintf("spec.requiredClaims[%d]", i), "set both claim and value", "has no claim or no value")...)
		}
	}
	return problems
}
