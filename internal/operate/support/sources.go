package support

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/metal/admin"
)

// Files returns the logs and YAML files in a directory and its subdirectories. In the archive they
// are below name.
func Files(dir, name string) []Log {
	var out []Log
	_ = filepath.WalkDir(dir, func(file string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // unreadable files are skipped
		}
		rel, err := filepath.Rel(dir, file)
		if err == nil && (strings.Contains(entry.Name(), ".log") || strings.HasSuffix(entry.Name(), ".yaml")) {
			out = append(out, Log{Name: path.Join(name, filepath.ToSlash(rel)), Open: func(context.Context) (io.ReadCloser, error) { return os.Open(file) }})
		}
		return nil
	})
	return out
}

// Consoles returns the console logs of all machines of a Packet API server.
func Consoles(ctx context.Context, c *admin.Client) ([]Log, error) {
	devices, err := c.Devices(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var out []Log
	for _, d := range devices {
		out = append(out, Log{Name: "machines/" + d.Hostname + ".log", Open: func(ctx context.Context) (io.ReadCloser, error) {
			r, w := io.Pipe()
			go func() { _ = w.CloseWithError(c.Stream(ctx, "/drover/v1/devices/"+d.ID+"/console?follow=false", w)) }()
			return r, nil
		}})
	}
	return out, nil
}

// Managers returns the logs of managers that run on the management cluster, including those of
// restarted containers.
func Managers(ctx context.Context, cfg *rest.Config) ([]Log, error) {
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	pods, err := c.CoreV1().Pods(config.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Pods of the manager: %w", err)
	}
	var out []Log
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			out = append(out, podLog(c, &pod, &corev1.PodLogOptions{Container: status.Name}))
			if status.RestartCount > 0 {
				out = append(out, podLog(c, &pod, &corev1.PodLogOptions{Container: status.Name, Previous: true}))
			}
		}
	}
	return out, nil
}

func podLog(c kubernetes.Interface, pod *corev1.Pod, options *corev1.PodLogOptions) Log {
	name := fmt.Sprintf("logs/%s/%s.log", pod.Name, options.Container)
	if options.Previous {
		name = fmt.Sprintf("logs/%s/%s.previous.log", pod.Name, options.Container)
	}
	options.Timestamps = true
	return Log{Name: name, Open: c.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream}
}
