package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeclient "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// releaseBytes is about what the record of such a release holds.
const releaseBytes = 3000

// floorObjects are those of benchChart, as one would write them by hand.
var floorObjects = []struct{ path, body string }{
	{"/api/v1/namespaces/floor/serviceaccounts/NAME", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"NAME"}}`},
	{"/api/v1/namespaces/floor/configmaps/NAME", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"values":"{}"}}`},
	{"/api/v1/namespaces/floor/services/NAME", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"NAME"},"spec":{"selector":{"app":"NAME"},"ports":[{"port":80}]}}`},
	{"/apis/apps/v1/namespaces/floor/deployments/NAME", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME"},"spec":{"replicas":1,
		"selector":{"matchLabels":{"app":"NAME"}},"template":{"metadata":{"labels":{"app":"NAME"}},"spec":{"containers":[{"name":"main","image":"bench"}]}}}}`},
}

// floor writes the same objects and records with a bare client that does as much at a time.
func (w *addonWorld) floor(ctx context.Context, releases int) (figures, error) {
	clients := make([]kubeclient.Interface, len(w.servers))
	for i, s := range w.servers {
		config := rest.CopyConfig(s.Config)
		config.QPS = -1
		var err error
		if clients[i], err = kubeclient.NewForConfig(config); err != nil {
			return figures{}, err
		}
	}
	before, err := w.count(ctx)
	if err != nil {
		return figures{}, err
	}
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(addonWriters)
	for i := range releases {
		group.Go(func() error {
			return writeFloor(groupCtx, clients[i%len(clients)], fmt.Sprintf("floor-%d-%d", releases, i))
		})
	}
	if err := group.Wait(); err != nil {
		return figures{}, err
	}
	took := time.Since(began)
	after, err := w.count(ctx)
	return figures{releases: releases, took: took, workload: after.workload - before.workload}, err
}

func writeFloor(ctx context.Context, c kubeclient.Interface, name string) error {
	record := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "record." + name, Labels: map[string]string{"state": "pending"}},
		Data:       map[string][]byte{"release": []byte(strings.Repeat("x", releaseBytes))},
	}
	record, err := c.CoreV1().Secrets("floor").Create(ctx, record, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, o := range floorObjects {
		err := c.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(strings.ReplaceAll(o.path, "NAME", name)).
			Param("fieldManager", "floor").Body([]byte(strings.ReplaceAll(o.body, "NAME", name))).Do(ctx).Error()
		if err != nil {
			return err
		}
	}
	record.Labels["state"] = "deployed"
	_, err = c.CoreV1().Secrets("floor").Update(ctx, record, metav1.UpdateOptions{})
	return err
}
