package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version.
var GroupVersion = schema.GroupVersion{Group: "drover.dev", Version: "v1alpha1"}

// AddToScheme registers all kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &AuditRecord{}, &AuditRecordList{}, &GitChange{}, &GitChangeList{}, &EtcdSnapshotSchedule{}, &EtcdSnapshotScheduleList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
