// What karmada-scheduler itself answers to the questions of `bayplan decide fleet`, one JSON line each: its own algorithm,
// plugins, cache and general estimator, in one process and without an API server. Nothing is written.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/features"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins"
	"github.com/karmada-io/karmada/pkg/util/indexregistry"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

type question struct {
	Name     string                          `json:"name"`
	Clusters []*clusterv1alpha1.Cluster      `json:"clusters"`
	Bindings []*workv1alpha2.ResourceBinding `json:"bindings"`
	Binding  *workv1alpha2.ResourceBinding   `json:"binding"`
}

type answer struct {
	Name                 string                       `json:"name"`
	ObservedAffinityName string                       `json:"observedAffinityName"`
	Clusters             []workv1alpha2.TargetCluster `json:"clusters"`
	Reason               string                       `json:"reason"`
	Errors               []string                     `json:"errors"`
}

func main() {
	if len(os.Args) != 2 || os.Args[1] != "fleet" {
		fail(errors.New("usage: karmada-oracle fleet < QUESTIONS > ANSWERS"))
	}
	if err := prepare(); err != nil {
		fail(err)
	}
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "karmada-oracle:", err)
	os.Exit(2)
}

// prepare drops the log and sets the one gate that differs from the defaults: without it the scheduler does not know
// anti-affinity groups.
func prepare() error {
	flags := flag.NewFlagSet("log", flag.ContinueOnError)
	klog.InitFlags(flags)
	klog.SetOutput(io.Discard)
	return errors.Join(
		flags.Set("logtostderr", "false"),
		flags.Set("stderrthreshold", "FATAL"),
		features.FeatureGate.Set(string(features.WorkloadAffinity)+"=true"),
	)
}

func answerAll(from io.Reader, to io.Writer) error {
	lines, out := bufio.NewReaderSize(from, 1<<20), bufio.NewWriterSize(to, 1<<20)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if _, err := out.Write(append(answerLine(line, number), '\n')); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// answerLine reports what cannot be answered in the place of the answer, as `bayplan decide` does.
func answerLine(line []byte, number int) (encoded []byte) {
	asked := &question{}
	refuse := func(reason any) []byte {
		text, _ := json.Marshal(map[string]any{"line": number, "name": asked.Name, "error": fmt.Sprint(reason)})
		return text
	}
	defer func() {
		if problem := recover(); problem != nil {
			encoded = refuse(fmt.Sprintf("panic: %v", problem))
		}
	}()
	if err := json.Unmarshal(line, asked); err != nil {
		return refuse(err)
	}
	if asked.Binding == nil || asked.Binding.Spec.Placement == nil {
		return refuse("binding.spec.placement: expected a Placement, got nothing")
	}
	algorithm, err := loaded(asked)
	if err != nil {
		return refuse(err)
	}
	text, err := json.Marshal(place(algorithm, asked))
	if err != nil {
		return refuse(err)
	}
	return text
}

func loaded(asked *question) (core.ScheduleAlgorithm, error) {
	bindings := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		indexregistry.ResourceBindingIndexByAffinityGroup: byGroup(func(groups *workv1alpha2.WorkloadAffinityGroups) string {
			return groups.AffinityGroup
		}),
		indexregistry.ResourceBindingIndexByAntiAffinityGroup: byGroup(func(groups *workv1alpha2.WorkloadAffinityGroups) string {
			return groups.AntiAffinityGroup
		}),
	})
	for _, binding := range append(asked.Bindings, asked.Binding) {
		if err := bindings.Add(binding); err != nil {
			return nil, err
		}
	}
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, cluster := range asked.Clusters {
		if err := clusters.Add(cluster); err != nil {
			return nil, err
		}
	}
	known := schedulercache.NewCache(clusterlister.NewClusterLister(clusters), bindings, schedulercache.DefaultAssumptionTTL)
	return core.NewGenericScheduler(known, plugins.NewInTreeRegistry())
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

// place tries the terms of clusterAffinities in turn from the observed one on, as the scheduler does around its
// algorithm; the reason is that of the first.
func place(algorithm core.ScheduleAlgorithm, asked *question) *answer {
	given := &answer{Name: asked.Name, Clusters: []workv1alpha2.TargetCluster{}, Errors: []string{}}
	binding := asked.Binding.DeepCopy()
	terms := binding.Spec.Placement.ClusterAffinities
	names := []string{binding.Status.SchedulerObservedAffinityName}
	if terms != nil {
		names = remaining(terms, names[0])
	}
	for _, name := range names {
		binding.Status.SchedulerObservedAffinityName = name
		found, err := algorithm.Schedule(context.Background(), &binding.Spec, &binding.Status, &core.ScheduleAlgorithmOption{})
		if err == nil {
			given.Clusters, given.Reason = found.SuggestedClusters, ""
			if terms != nil {
				given.ObservedAffinityName = name
			}
			return given
		}
		given.Errors = append(given.Errors, err.Error())
		if given.Reason == "" {
			given.Reason = reason(err)
		}
	}
	return given
}

// remaining names the terms from the first one with the observed name on; all of them if it is none of these.
func remaining(terms []policyv1alpha1.ClusterAffinityTerm, observed string) []string {
	named := func(term policyv1alpha1.ClusterAffinityTerm) bool { return term.AffinityName == observed }
	var names []string
	for _, term := range terms[max(0, slices.IndexFunc(terms, named)):] {
		names = append(names, term.AffinityName)
	}
	return names
}

// reason is that of the binding's Scheduled condition.
func reason(err error) string {
	var unschedulable *framework.UnschedulableError
	var unfit *framework.FitError
	switch {
	case errors.As(err, &unschedulable):
		return workv1alpha2.BindingReasonUnschedulable
	case errors.As(err, &unfit):
		return workv1alpha2.BindingReasonNoClusterFit
	}
	return workv1alpha2.BindingReasonSchedulerError
}
