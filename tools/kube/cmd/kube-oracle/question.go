package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// question is one line of `bayplan decide pods` or `decide preemption`.
type question struct {
	Name       string            `json:"name"`
	Nodes      []*v1.Node        `json:"nodes"`
	Namespaces []*v1.Namespace   `json:"namespaces"`
	Pods       []*v1.Pod         `json:"pods"`
	Pod        *v1.Pod           `json:"pod"`
	Objects    []json.RawMessage `json:"objects"`
	Steps      []step            `json:"steps"`
	Options    struct {
		Config json.RawMessage `json:"config"`
	} `json:"options"`
}

// cluster is a scheduler that has been told of every object of a question, and how to tell it more.
type cluster struct {
	*scheduler.Scheduler
	known  *informerFactory
	client *recordingClient
}

// newCluster loads a question in the order in which kube-scheduler's caches would fill: what a pod refers to comes first.
func newCluster(ctx context.Context, asked *question) (*cluster, error) {
	calls := &recordingClient{}
	client, err := kubernetes.NewForConfig(&rest.Config{Transport: calls, QPS: -1})
	if err != nil {
		return nil, err
	}
	options, err := schedulerOptions(asked.Options.Config)
	if err != nil {
		return nil, err
	}
	known := newInformerFactory()
	noEvents := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	sched, err := scheduler.New(ctx, client, known, nil, noEvents, options...)
	if err != nil {
		return nil, err
	}
	loaded := &cluster{sched, known, calls}
	for _, namespace := range asked.Namespaces {
		if err := loaded.apply(namespace); err != nil {
			return nil, err
		}
	}
	for _, node := range asked.Nodes {
		if err := loaded.apply(node); err != nil {
			return nil, err
		}
	}
	for _, raw := range asked.Objects {
		object, err := decoded(raw)
		if err != nil {
			return nil, err
		}
		if err := loaded.apply(object); err != nil {
			return nil, err
		}
	}
	for _, pod := range asked.Pods {
		if err := loaded.apply(pod); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// schedulerOptions has every node scored: kube-scheduler would otherwise stop at a share of a large cluster.
func schedulerOptions(raw json.RawMessage) ([]scheduler.Option, error) {
	all := int32(100)
	options := []scheduler.Option{scheduler.WithPercentageOfNodesToScore(&all)}
	if len(raw) == 0 || string(raw) == "null" {
		return options, nil
	}
	object, err := runtime.Decode(configscheme.Codecs.UniversalDecoder(), raw)
	if err != nil {
		return nil, fmt.Errorf("options.config: %w", err)
	}
	configured, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("options.config: expected a KubeSchedulerConfiguration, got %T", object)
	}
	if err := validation.ValidateKubeSchedulerConfiguration(configured); err != nil {
		return nil, fmt.Errorf("options.config: %w", err)
	}
	for i := range configured.Profiles {
		configured.Profiles[i].PercentageOfNodesToScore = nil
		complete(configured.Profiles[i].Plugins)
	}
	return append(options, scheduler.WithProfiles(configured.Profiles...)), nil
}

// complete enables a queue order and a binder where all default plugins are disabled: without them kube-scheduler does
// not start, but they decide nothing.
func complete(plugins *config.Plugins) {
	all := func(disabled config.Plugin) bool { return disabled.Name == "*" }
	if plugins == nil || !slices.ContainsFunc(plugins.MultiPoint.Disabled, all) {
		return
	}
	for _, missing := range []struct {
		set  *config.PluginSet
		name string
	}{{&plugins.QueueSort, "PrioritySort"}, {&plugins.Bind, "DefaultBinder"}} {
		same := func(enabled config.Plugin) bool { return enabled.Name == missing.name }
		if len(missing.set.Enabled) == 0 && !slices.ContainsFunc(plugins.MultiPoint.Enabled, same) {
			missing.set.Enabled = []config.Plugin{{Name: missing.name}}
		}
	}
}

func decoded(raw json.RawMessage) (runtime.Object, error) {
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	return object, err
}

// apply tells the scheduler that an object was created or changed. Pods that have ended are hidden from it, as by the
// field selector of kube-scheduler's own informer.
func (c *cluster) apply(object runtime.Object) error {
	admit(object)
	if pod, ok := object.(*v1.Pod); ok && (pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed) {
		return c.known.remove(pod)
	}
	return c.known.update(object)
}

// admit adds what an API server would have added: defaults, and a UID, without which the cache refuses a pod.
func admit(object runtime.Object) {
	legacyscheme.Scheme.Default(object)
	if pod, ok := object.(*v1.Pod); ok {
		if pod.Namespace == "" {
			pod.Namespace = v1.NamespaceDefault
		}
		if pod.UID == "" {
			pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
		}
	}
}

// cycle is what a scheduling cycle starts with: the pod, its profile, and a snapshot that has seen every change.
type cycle struct {
	*cluster
	pod      *framework.QueuedPodInfo
	profile  framework.Framework
	snapshot *cache.Snapshot
}

func (c *cluster) newCycle(ctx context.Context, pod *v1.Pod) (*cycle, error) {
	admit(pod)
	info, _ := framework.NewPodInfo(pod) // a selector that cannot be parsed is InterPodAffinity's to report
	profile := c.Profiles[pod.Spec.SchedulerName]
	if profile == nil {
		return nil, fmt.Errorf("no profile has the pod's schedulerName %q", pod.Spec.SchedulerName)
	}
	snapshot, ok := profile.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return nil, fmt.Errorf("the profile holds a %T instead of the snapshot that its cycle refreshes", profile.SnapshotSharedLister())
	}
	if err := c.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return nil, err
	}
	return &cycle{c, &framework.QueuedPodInfo{PodInfo: info}, profile, snapshot}, nil
}

// recordingClient answers every API call with success and remembers which pods were to be deleted.
type recordingClient struct {
	lock    sync.Mutex
	deleted []string
}

func (c *recordingClient) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodDelete {
		parts := strings.Split(request.URL.Path, "/") // /api/v1/namespaces/NAMESPACE/pods/NAME
		c.lock.Lock()
		c.deleted = append(c.deleted, parts[4]+"/"+parts[6])
		c.lock.Unlock()
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(`{"kind":"Pod","apiVersion":"v1"}`)),
		Request:    request,
	}, nil
}
