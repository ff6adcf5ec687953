// How fast karmada-scheduler itself decides on an input of `bayplan bench fleet`: its own algorithm, plugins, cache and
// general estimator, in one process and without an API server. Nothing is written; a binding that was placed is put
// back where the informer would put it, so that the next decision sees it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/features"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins"
	"github.com/karmada-io/karmada/pkg/util/indexregistry"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

type input struct {
	Clusters []*clusterv1alpha1.Cluster      `json:"clusters"`
	Bindings []*workv1alpha2.ResourceBinding `json:"bindings"`
	Pending  []*workv1alpha2.ResourceBinding `json:"pending"`
}

type result struct {
	OK      int     `json:"ok"`
	Fail    int     `json:"fail"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"` // of all threads
	PerS    float64 `json:"bindings_per_s"`
}

// fleet is what karmada-scheduler decides with: the bindings in its informer's store, and the algorithm that reads it.
type fleet struct {
	bindings  cache.Indexer
	algorithm core.ScheduleAlgorithm
}

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: karmada-decisions FILE"))
	}
	if err := silence(); err != nil {
		fail(err)
	}
	given, err := read(os.Args[1])
	if err != nil {
		fail(err)
	}
	fleet, err := loaded(given)
	if err != nil {
		fail(err)
	}
	measured, err := fleet.placeAll(given.Pending)
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
	fmt.Fprintln(os.Stderr, "karmada-decisions:", err)
	os.Exit(2)
}

// silence drops the log: with workload affinity the scheduler writes a line for each cluster that it looks at, and how
// fast a terminal or file takes those is not what is measured. That they are put together is.
func silence() error {
	flags := flag.NewFlagSet("log", flag.ContinueOnError)
	klog.InitFlags(flags)
	klog.SetOutput(io.Discard)
	return errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "FATAL"))
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
	return given, nil
}

func loaded(given *input) (*fleet, error) {
	// The one setting that differs from the defaults: without it the scheduler does not know anti-affinity groups.
	if err := features.FeatureGate.Set(string(features.WorkloadAffinity) + "=true"); err != nil {
		return nil, err
	}
	bindings := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		indexregistry.ResourceBindingIndexByAffinityGroup: byGroup(func(groups *workv1alpha2.WorkloadAffinityGroups) string {
			return groups.AffinityGroup
		}),
		indexregistry.ResourceBindingIndexByAntiAffinityGroup: byGroup(func(groups *workv1alpha2.WorkloadAffinityGroups) string {
			return groups.AntiAffinityGroup
		}),
	})
	// Those that wait are in the informer's store too, only without clusters.
	for _, some := range [][]*workv1alpha2.ResourceBinding{given.Bindings, given.Pending} {
		for _, binding := range some {
			if err := bindings.Add(binding); err != nil {
				return nil, err
			}
		}
	}
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, cluster := range given.Clusters {
		if err := clusters.Add(cluster); err != nil {
			return nil, err
		}
	}
	known := schedulercache.NewCache(clusterlister.NewClusterLister(clusters), bindings, schedulercache.DefaultAssumptionTTL)
	algorithm, err := core.NewGenericScheduler(known, plugins.NewInTreeRegistry())
	return &fleet{bindings, algorithm}, err
}

// byGroup is an index of bindings by one of their groups; the scheduler's own is not exported.
func byGroup(of func(*workv1alpha2.WorkloadAffinityGroups) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		groups := object.(*workv1alpha2.ResourceBinding).Spec.WorkloadAffinityGroups
		if groups == nil || of(groups) == "" {
			return nil, nil
		}
		return []string{of(groups)}, nil
	}
}

// placeAll places every waiting binding, one after another. Only this is timed. Each is taken as written and seen by
// the informer before the next: karmada-scheduler would meanwhile keep it among those being assigned as well, and copy
// all of these once for each cluster, so this is its faster case.
func (f *fleet) placeAll(waiting []*workv1alpha2.ResourceBinding) (*result, error) {
	measured := &result{}
	runtime.GC() // what reading left behind is not the scheduler's to clear away
	start, used := time.Now(), processorTime()
	for _, binding := range waiting {
		clusters, err := f.place(binding.DeepCopy())
		if err != nil {
			// Too few clusters for a spread constraint is an error like any other to it, not one of a kind.
			measured.Fail++
			continue
		}
		measured.OK++
		placed := binding.DeepCopy()
		placed.Spec.Clusters = clusters
		if err := f.bindings.Update(placed); err != nil {
			return nil, err
		}
	}
	measured.Seconds, measured.CPU = time.Since(start).Seconds(), processorTime()-used
	measured.PerS = float64(len(waiting)) / measured.Seconds
	return measured, nil
}

// place tries the terms of clusterAffinities in turn, as the scheduler does around its algorithm; the error is that of
// the first.
func (f *fleet) place(binding *workv1alpha2.ResourceBinding) ([]workv1alpha2.TargetCluster, error) {
	terms := binding.Spec.Placement.ClusterAffinities
	if terms == nil {
		return f.attempt(binding)
	}
	var first error
	for _, term := range terms {
		binding.Status.SchedulerObservedAffinityName = term.AffinityName
		clusters, err := f.attempt(binding)
		if err == nil {
			return clusters, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (f *fleet) attempt(binding *workv1alpha2.ResourceBinding) ([]workv1alpha2.TargetCluster, error) {
	found, err := f.algorithm.Schedule(context.Background(), &binding.Spec, &binding.Status, &core.ScheduleAlgorithmOption{})
	return found.SuggestedClusters, err
}
