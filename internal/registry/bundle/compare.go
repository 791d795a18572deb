package bundle

import (
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Change is the kind of a difference between two bundles.
type Change string

// Changes.
const (
	Added   Change = "added"
	Changed Change = "changed"
	Removed Change = "removed"
)

// Difference lists the differences between two bundles.
type Difference struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Packages is sorted by name.
	Packages []PackageDifference `json:"packages"`
}

// PackageDifference is the difference of one package.
type PackageDifference struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	// From and To are the latest versions, empty if the package doesn't exist.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Settings are the changed fields of the package.
	Settings []string            `json:"settings,omitempty"`
	Versions []VersionDifference `json:"versions,omitempty"`
	Images   []ImageDifference   `json:"images,omitempty"`
}

// VersionDifference is the difference of one version of a package.
type VersionDifference struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	// Settings are the changed fields other than the digest of the chart and the images.
	Settings []string `json:"settings,omitempty"`
}

// ImageDifference is the difference of an image over all versions of a package.
type ImageDifference struct {
	Repository string   `json:"repository"`
	Change     Change   `json:"change"`
	From       []string `json:"from,omitempty"`
	To         []string `json:"to,omitempty"`
}

// Compare returns the differences between two bundles.
func Compare(older, newer *packagesv1.PackageBundle) Difference {
	d := Difference{From: older.Name, To: newer.Name, Packages: []PackageDifference{}}
	before, after := byName(older), byName(newer)
	for _, name := range bothKeys(before, after) {
		if p, differs := comparePackage(before[name], after[name]); differs {
			d.Packages = append(d.Packages, p)
		}
	}
	return d
}

// Empty reports whether the bundles contain the same packages.
func (d Difference) Empty() bool { return len(d.Packages) == 0 }

// KeepsMinor reports whether all given packages keep their minor version, as the upgrade policy
// "patch" requires.
func (d Difference) KeepsMinor(packages []string) bool {
	for _, p := range d.Packages {
		used := slices.ContainsFunc(packages, func(name string) bool { return strings.EqualFold(name, p.Name) })
		if used && p.Change != Added && !sameMinor(p.From, p.To) {
			return false
		}
	}
	return true
}

// sameMinor reports whether two versions have the same minor version. Versions that are not
// semantic must be equal.
func sameMinor(from, to string) bool {
	if from == to {
		return true
	}
	before, err := semver.NewVersion(from)
	if err != nil {
		return false
	}
	after, err := semver.NewVersion(to)
	return err == nil && before.Major() == after.Major() && before.Minor() == after.Minor()
}

func comparePackage(before, after *packagesv1.BundlePackage) (PackageDifference, bool) {
	d := PackageDifference{
		Change: change(before != nil, after != nil), From: latest(before), To: latest(after),
		Versions: compareVersions(versionsOf(before), versionsOf(after)), Images: compareImages(imagesOf(before), imagesOf(after)),
	}
	if after == nil {
		d.Name = before.Name
		return d, true
	}
	d.Name = after.Name
	if before != nil {
		d.Settings = changedFields(map[string]bool{
			"name": before.Name != after.Name, "workloadonly": before.WorkloadOnly != after.WorkloadOnly,
			"source.registry": before.Source.Registry != after.Source.Registry, "source.repository": before.Source.Repository != after.Source.Repository,
		})
	}
	return d, d.Change == Added || d.From != d.To || len(d.Settings)+len(d.Versions)+len(d.Images) > 0
}

func compareVersions(before, after map[string]packagesv1.SourceVersion) []VersionDifference {
	var out []VersionDifference
	for _, name := range bothKeys(before, after) {
		older, was := before[name]
		newer, is := after[name]
		d := VersionDifference{Name: name, Change: change(was, is), From: older.Digest, To: newer.Digest}
		if was && is {
			d.Settings = changedFields(map[string]bool{
				"schema": older.Schema != newer.Schema, "dependencies": !slices.Equal(older.Dependencies, newer.Dependencies),
			})
			if d.From == d.To && len(d.Settings) == 0 {
				continue
			}
		}
		out = append(out, d)
	}
	return out
}

func compareImages(before, after map[string][]string) []ImageDifference {
	var out []ImageDifference
	for _, repository := range bothKeys(before, after) {
		older, was := before[repository]
		newer, is := after[repository]
		if !was || !is || !slices.Equal(older, newer) {
			out = append(out, ImageDifference{Repository: repository, Change: change(was, is), From: older, To: newer})
		}
	}
	return out
}

func change(was, is bool) Change {
	switch {
	case !was:
		return Added
	case !is:
		return Removed
	default:
		return Changed
	}
}

func changedFields(fields map[string]bool) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] {
			out = append(out, name)
		}
	}
	return out
}

// byName indexes packages by lower-case name, because Find ignores case.
func byName(b *packagesv1.PackageBundle) map[string]*packagesv1.BundlePackage {
	out := map[string]*packagesv1.BundlePackage{}
	for i := range slices.Backward(b.Spec.Packages) { // the first of a name wins
		out[strings.ToLower(b.Spec.Packages[i].Name)] = &b.Spec.Packages[i]
	}
	return out
}

func latest(p *packagesv1.BundlePackage) string {
	if p == nil || len(p.Source.Versions) == 0 {
		return ""
	}
	return p.Source.Versions[0].Name
}

func versionsOf(p *packagesv1.BundlePackage) map[string]packagesv1.SourceVersion {
	out := map[string]packagesv1.SourceVersion{}
	if p != nil {
		for _, v := range slices.Backward(p.Source.Versions) {
			out[v.Name] = v
		}
	}
	return out
}

// imagesOf returns the sorted digests of each image.
func imagesOf(p *packagesv1.BundlePackage) map[string][]string {
	out := map[string][]string{}
	if p == nil {
		return out
	}
	for _, v := range p.Source.Versions {
		for _, image := range v.Images {
			out[image.Repository] = append(out[image.Repository], image.Digest)
		}
	}
	for repository, digests := range out {
		slices.Sort(digests)
		out[repository] = slices.Compact(digests)
	}
	return out
}

func bothKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
