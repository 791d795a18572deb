package bundle

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Check reports all problems that would make a published bundle unusable.
func Check(b *packagesv1.PackageBundle) error {
	var problems []error
	if _, err := ParseName(b.Name); err != nil {
		problems = append(problems, err)
	}
	if len(b.Spec.Packages) == 0 {
		problems = append(problems, errors.New("the bundle contains no packages"))
	}
	seen := map[string]bool{}
	for i := range b.Spec.Packages {
		p := &b.Spec.Packages[i]
		if lower := strings.ToLower(p.Name); seen[lower] {
			problems = append(problems, fmt.Errorf("duplicate package %q", p.Name))
		} else {
			seen[lower] = true
		}
		for _, problem := range checkPackage(b, p) {
			problems = append(problems, fmt.Errorf("package %q: %w", p.Name, problem))
		}
	}
	return errors.Join(problems...)
}

func checkPackage(b *packagesv1.PackageBundle, p *packagesv1.BundlePackage) []error {
	var problems []error
	if p.Name == "" || p.Source.Repository == "" {
		problems = append(problems, errors.New("name and repository are required"))
	}
	if len(p.Source.Versions) == 0 {
		problems = append(problems, errors.New("no versions"))
	}
	seen := map[string]bool{}
	for i := range p.Source.Versions {
		v := &p.Source.Versions[i]
		if seen[v.Name] {
			problems = append(problems, fmt.Errorf("duplicate version %q", v.Name))
		}
		seen[v.Name] = true
		problems = append(problems, checkVersion(v)...)
		if _, err := Dependencies(b, Found{Package: p, Version: v}); err != nil {
			problems = append(problems, fmt.Errorf("version %q: %w", v.Name, err))
		}
	}
	return problems
}

func checkVersion(v *packagesv1.SourceVersion) []error {
	var problems []error
	if v.Name == "" || v.Name == packagesv1.LatestVersion {
		problems = append(problems, fmt.Errorf("invalid version name %q", v.Name))
	}
	if !sha256Digest.MatchString(v.Digest) {
		problems = append(problems, fmt.Errorf("version %q: invalid digest %q, want sha256:…", v.Name, v.Digest))
	}
	for _, image := range v.Images {
		if image.Repository == "" || !sha256Digest.MatchString(image.Digest) {
			problems = append(problems, fmt.Errorf("version %q: image %q: invalid digest %q, want sha256:…", v.Name, image.Repository, image.Digest))
		}
	}
	if _, err := compile(v); err != nil {
		problems = append(problems, fmt.Errorf("version %q: %w", v.Name, err))
	}
	return problems
}
