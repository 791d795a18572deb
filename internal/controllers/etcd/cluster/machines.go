package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/etcd/boot"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const clusterNameLabel = clusterv1.ClusterNameLabel

func compare(a, b string) int { return cmp.Compare(a, b) }

func splitList(list string) []string { return strings.Split(list, ",") }

func deviceOf(m *infrav1.PacketMachine) string {
	_, id, _ := strings.Cut(ptr.Deref(m.Spec.ProviderID, ""), "://")
	return id
}

// readMachines reads the machines, their configurations and their template, and deletes
// configurations whose machine is gone, or was never created.
func (c *Controller) readMachines(ctx context.Context, s *scope) error {
	if err := s.listMachines(ctx); err != nil {
		return err
	}
	if err := c.readTemplate(ctx, s); err != nil {
		return err
	}
	for i := range s.configs {
		config := &s.configs[i]
		if s.machine(config.Name) != nil || !config.DeletionTimestamp.IsZero() {
			continue
		}
		if err := ctrlclient.IgnoreNotFound(c.Client.Delete(ctx, config)); err != nil {
			return fmt.Errorf("deleting EtcdadmConfig %q: %w", config.Name, err)
		}
	}
	return c.markStarted(ctx, s)
}

func (s *scope) listMachines(ctx context.Context) error {
	of := []ctrlclient.ListOption{ctrlclient.InNamespace(s.etcd.Namespace), ctrlclient.MatchingLabels{etcdv1.MemberLabel: s.etcd.Name}}
	machines, configs := &infrav1.PacketMachineList{}, &etcdbootstrapv1.EtcdadmConfigList{}
	if err := s.controller.Client.List(ctx, machines, of...); err != nil {
		return fmt.Errorf("listing machines: %w", err)
	}
	if err := s.controller.Client.List(ctx, configs, of...); err != nil {
		return fmt.Errorf("listing configurations: %w", err)
	}
	s.machines = slices.DeleteFunc(machines.Items, func(m infrav1.PacketMachine) bool { return !metav1.IsControlledBy(&m, s.etcd) })
	s.configs = slices.DeleteFunc(configs.Items, func(e etcdbootstrapv1.EtcdadmConfig) bool { return !metav1.IsControlledBy(&e, s.etcd) })
	slices.SortFunc(s.machines, func(a, b infrav1.PacketMachine) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (s *scope) machine(name string) *infrav1.PacketMachine {
	i := slices.IndexFunc(s.machines, func(m infrav1.PacketMachine) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &s.machines[i]
}

// readTemplate reads the template of machines, and derives what identifies their configuration.
func (c *Controller) readTemplate(ctx context.Context, s *scope) error {
	ref := s.etcd.Spec.InfrastructureTemplate
	template := &infrav1.PacketMachineTemplate{}
	err := c.Client.Get(ctx, ctrlclient.ObjectKey{Namespace: s.etcd.Namespace, Name: ref.Name}, template)
	if ref.Kind != "PacketMachineTemplate" || apierrors.IsNotFound(err) {
		return &reconcile.Wait{
			Reason: etcdv1.InvalidTemplateReason, After: time.Minute,
			Message: fmt.Sprintf("%s %q not found: spec.infrastructureTemplate must name a PacketMachineTemplate", ref.Kind, ref.Name),
		}
	}
	if err != nil {
		return fmt.Errorf("reading PacketMachineTemplate %q: %w", ref.Name, err)
	}
	s.template = template
	text, err := json.Marshal([]any{template.Spec.Template.Spec, s.etcd.Spec.EtcdadmConfigSpec})
	sum := sha256.Sum256(text)
	s.config = hex.EncodeToString(sum[:8])
	return err
}

// markStarted remembers on a machine that its device was active, which its status forgets when it
// moves to another management plane.
func (c *Controller) markStarted(ctx context.Context, s *scope) error {
	for i := range s.machines {
		m := &s.machines[i]
		if _, marked := m.Annotations[etcdv1.StartedAnnotation]; marked || !m.Status.Ready {
			continue
		}
		if err := c.annotate(ctx, m, etcdv1.StartedAnnotation, "true"); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) annotate(ctx context.Context, m *infrav1.PacketMachine, key, value string) error {
	before := m.DeepCopy()
	m.Annotations[key] = value
	if err := c.Client.Patch(ctx, m, ctrlclient.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotating PacketMachine %q: %w", m.Name, err)
	}
	return nil
}

// order creates a machine: its configuration first, the machine last.
func (c *Controller) order(ctx context.Context, s *scope, a plan.Action) error {
	name := fmt.Sprintf("%s-%d", s.etcd.Name, a.Slot) // all members of a new etcd know each other by name
	if s.initialized() {
		name = s.etcd.Name + "-" + rand.String(5)
	}
	member, err := s.member(name, a)
	if err != nil {
		return err
	}
	if member.Spec.Files, err = c.resolveFiles(ctx, s); err != nil {
		return err
	}
	data, err := boot.Userdata(member)
	if err != nil {
		return err
	}
	if err := c.createConfig(ctx, s, name, data); err != nil {
		return err
	}
	m := &infrav1.PacketMachine{ObjectMeta: s.meta(name), Spec: *s.template.Spec.Template.Spec.DeepCopy()}
	m.Annotations = map[string]string{
		etcdv1.SlotAnnotation: strconv.Itoa(a.Slot), etcdv1.AddressAnnotation: s.addresses[a.At].Address, etcdv1.ConfigAnnotation: s.config,
		etcdv1.ExpiresAnnotation: c.Clock.Now().Add(memberLife * 2 / 3).UTC().Format(time.RFC3339),
	}
	m.Annotations[clusterv1.TemplateClonedFromNameAnnotation] = s.template.Name
	if err := c.Client.Create(ctx, m); err != nil {
		return fmt.Errorf("creating PacketMachine %q: %w", name, err)
	}
	c.Events.Eventf(s.etcd, corev1.EventTypeNormal, "MachineCreated", "Created machine %q for slot %d", name, a.Slot)
	return nil
}

// resolveFiles returns the files of machines with the content that Secrets have.
func (c *Controller) resolveFiles(ctx context.Context, s *scope) ([]etcdbootstrapv1.File, error) {
	files := slices.Clone(s.etcd.Spec.EtcdadmConfigSpec.Files)
	for i, f := range files {
		if f.ContentFrom == nil {
			continue
		}
		from := f.ContentFrom.Secret
		secret, err := c.Secrets.Secret(ctx, ctrlclient.ObjectKey{Namespace: s.etcd.Namespace, Name: from.Name})
		if ctrlclient.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %q: %w", from.Name, err)
		}
		var content []byte
		if err == nil {
			content = secret.Data[from.Key]
		}
		if content == nil {
			return nil, &reconcile.Wait{
				Reason: etcdv1.InvalidTemplateReason, After: time.Minute,
				Message: fmt.Sprintf("File %q of etcd machines needs key %q of Secret %q, which is not found", f.Path, from.Key, from.Name),
			}
		}
		files[i].Content, files[i].ContentFrom = string(content), nil
	}
	return files, nil
}

// member returns the member that a machine boots.
func (s *scope) member(name string, a plan.Action) (boot.Member, error) {
	address, slot := s.addresses[a.At].Address, s.addresses[a.Slot].Address
	hosts := []string{slot, "localhost", "127.0.0.1", name}
	if address != slot {
		hosts = append(hosts, address)
	}
	m := boot.Member{
		Name: name, Address: address, Slot: slot, Existing: s.initialized(), CA: s.authority.PEM(),
		Spec: s.etcd.Spec.EtcdadmConfigSpec, Initial: map[string]string{name: address},
	}
	for other, at := range s.others() {
		m.Initial[other] = at
	}
	var err error
	if m.Server, err = s.issue(pkix.Name{CommonName: name}, hosts, memberLife); err != nil {
		return m, err
	}
	m.Peer, err = s.issue(pkix.Name{CommonName: boot.PeerName}, hosts, memberLife)
	return m, err
}

// others returns the addresses of the other members by name.
func (s *scope) others() map[string]string {
	out := map[string]string{}
	if !s.initialized() {
		for slot := range s.replicas() {
			out[fmt.Sprintf("%s-%d", s.etcd.Name, slot)] = s.addresses[slot].Address
		}
		return out
	}
	for _, m := range s.world.Members {
		if !m.Learner {
			out[cmp.Or(m.Name, strconv.FormatUint(m.ID, 16))] = s.addresses[m.At].Address
		}
	}
	return out
}

// createConfig creates the EtcdadmConfig of a machine and the Secret with its userdata.
func (c *Controller) createConfig(ctx context.Context, s *scope, name string, data []byte) error {
	config := &etcdbootstrapv1.EtcdadmConfig{ObjectMeta: s.meta(name), Spec: *s.etcd.Spec.EtcdadmConfigSpec.DeepCopy()}
	if err := c.Client.Create(ctx, config); err != nil {
		return fmt.Errorf("creating EtcdadmConfig %q: %w", name, err)
	}
	secret := &corev1.Secret{ObjectMeta: s.meta(name), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": data, "format": []byte("cloud-config")}}
	secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(config, etcdbootstrapv1.GroupVersion.WithKind("EtcdadmConfig"))}
	secret.Labels[clusterctlv1.ClusterctlMoveLabel] = ""
	if err := c.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating Secret %q: %w", name, err)
	}
	before := config.DeepCopy()
	setDataAvailable(config, secret.Name)
	if err := c.Client.Status().Patch(ctx, config, ctrlclient.MergeFrom(before)); err != nil {
		return fmt.Errorf("updating EtcdadmConfig %q: %w", name, err)
	}
	return nil
}

func (c *Controller) deleteMachine(ctx context.Context, s *scope, name string) error {
	m := s.machine(name)
	if m == nil || !m.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := ctrlclient.IgnoreNotFound(c.Client.Delete(ctx, m)); err != nil {
		return fmt.Errorf("deleting PacketMachine %q: %w", name, err)
	}
	c.Events.Eventf(s.etcd, corev1.EventTypeNormal, "MachineDeleted", "Deleted machine %q", name)
	return nil
}
