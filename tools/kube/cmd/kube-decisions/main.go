// How fast kube-scheduler itself decides on an input of `bayplan bench pods`: its own queue, cache, default profile and
// share of nodes to score, in one process and without an API server. Nothing is bound; a pod that was placed stays
// assumed, which is all that the next decision of the real scheduler sees of it too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type input struct {
	Nodes      []*v1.Node      `json:"nodes"`
	Namespaces []*v1.Namespace `json:"namespaces"`
	Init       []*v1.Pod       `json:"init"`
	Pods       []*v1.Pod       `json:"pods"`
}

type result struct {
	OK      int     `json:"ok"`
	Fail    int     `json:"fail"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"` // of all threads
	PerS    float64 `json:"pods_per_s"`
}

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: kube-decisions FILE"))
	}
	given, err := read(os.Args[1])
	if err != nil {
		fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sched, err := loaded(ctx, given)
	if err != nil {
		fail(err)
	}
	measured, err := place(ctx, sched, len(given.Pods))
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(measured); err != nil {
		fail(err)
	}
}

// processorTime is what the process has used so far, in seconds.
func processorTime() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		fail(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kube-decisions:", err)
	os.Exit(2)
}

func read(path string) (*input, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	given := &input{}
	if err := json.Unmarshal(content, given); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, pod := range slices.Concat(given.Init, given.Pods) {
		admit(pod)
	}
	return given, nil
}

// admit adds what an API server would have added before the scheduler saw the pod: defaults, and a UID, without which
// the cache refuses it.
func admit(pod *v1.Pod) {
	legacyscheme.Scheme.Default(pod)
	if pod.UID == "" {
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
}

// loaded is a scheduler as kube-scheduler makes it without a configuration file. Its informers are never started, so
// the client is never used; what they would have told it goes straight into its cache, its queue and their stores.
func loaded(ctx context.Context, given *input) (*scheduler.Scheduler, error) {
	client, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		return nil, err
	}
	noEvents := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	known := informers.NewSharedInformerFactory(client, 0)
	sched, err := scheduler.New(ctx, client, known, nil, noEvents)
	if err != nil {
		return nil, err
	}
	for _, namespace := range given.Namespaces {
		if err := known.Core().V1().Namespaces().Informer().GetStore().Add(namespace); err != nil {
			return nil, err
		}
	}
	logger := klog.FromContext(ctx)
	for _, node := range given.Nodes {
		sched.Cache.AddNode(logger, node)
	}
	for _, pod := range given.Init {
		if err := sched.Cache.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	for _, pod := range given.Pods {
		sched.SchedulingQueue.Add(ctx, pod)
	}
	return sched, nil
}

// place takes every pod from the queue, one after another. Only this is timed, and of the real cycle all but the
// binding and, for a pod that fits nowhere, the preemption, which `bayplan bench` leaves out as well.
func place(ctx context.Context, sched *scheduler.Scheduler, waiting int) (*result, error) {
	profile := sched.Profiles[v1.DefaultSchedulerName]
	snapshot, ok := profile.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return nil, errors.New("the profile does not hold the snapshot that its cycle refreshes")
	}
	logger := klog.FromContext(ctx)
	measured := &result{}
	runtime.GC() // what reading left behind is not the scheduler's to clear away
	start, used := time.Now(), processorTime()
	for range waiting {
		next, err := sched.NextPod(logger)
		if err != nil {
			return nil, err
		}
		if err := sched.Cache.UpdateSnapshot(logger, snapshot); err != nil {
			return nil, err
		}
		state := framework.NewCycleState()
		chosen, err := sched.SchedulePod(ctx, profile, state, next)
		var unfit *framework.FitError
		switch {
		case errors.As(err, &unfit) || errors.Is(err, scheduler.ErrNoNodesAvailable):
			measured.Fail++
		case err != nil:
			return nil, err
		default:
			measured.OK++
			assumed := next.DeepCopy().Pod
			assumed.Spec.NodeName = chosen.SuggestedHost
			if err := sched.Cache.AssumePod(logger, assumed); err != nil {
				return nil, err
			}
			if status := profile.RunReservePluginsReserve(ctx, state, assumed, chosen.SuggestedHost); !status.IsSuccess() {
				return nil, status.AsError()
			}
		}
		sched.SchedulingQueue.Done(next.Pod.UID)
	}
	measured.Seconds, measured.CPU = time.Since(start).Seconds(), processorTime()-used
	measured.PerS = float64(waiting) / measured.Seconds
	return measured, nil
}
