package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// prefix is what DefaultPreemption's message begins with.
const prefix = "preemption: "

type preemptionAnswer struct {
	Name      string              `json:"name"`
	Nominated string              `json:"nominated"`
	Victims   []string            `json:"victims"`
	Message   string              `json:"message"`
	Status    string              `json:"status,omitempty"` // where DefaultPreemption was not asked
	Others    []*preemptionAnswer `json:"others,omitempty"` // what else was chosen in another attempt
}

func (a *preemptionAnswer) equals(other *preemptionAnswer) bool {
	return a.Nominated == other.Nominated && a.Message == other.Message && slices.Equal(a.Victims, other.Victims)
}

// answerPreemption is empty for a pod that fits somewhere.
func answerPreemption(asked *question) (any, error) {
	if asked.Pod == nil {
		return nil, errors.New("pod: expected a Pod, got nothing")
	}
	var first *preemptionAnswer
	for range *attempts {
		answer, err := attempt(asked)
		if err != nil {
			return nil, err
		}
		same := func(other *preemptionAnswer) bool { return other.equals(answer) }
		switch {
		case first == nil:
			first = answer
		case !first.equals(answer) && !slices.ContainsFunc(first.Others, same):
			first.Others = append(first.Others, answer)
		}
	}
	return first, nil
}

// attempt runs on a cluster of its own, since a preemption leaves traces in the scheduler.
func attempt(asked *question) (*preemptionAnswer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loaded, err := newCluster(ctx, asked)
	if err != nil {
		return nil, err
	}
	pod := asked.Pod.DeepCopy()
	cycle, err := loaded.newCycle(ctx, pod)
	if err != nil {
		return nil, err
	}
	// The preemption looks the pod up again. It was never in the queue, so its handlers need not know of it.
	if err := loaded.known.of(pod).store.Add(pod); err != nil {
		return nil, err
	}
	answer := &preemptionAnswer{Name: asked.Name, Victims: []string{}}
	state := framework.NewCycleState()
	_, err = loaded.SchedulePod(ctx, cycle.profile, state, cycle.pod)
	var unfit *framework.FitError
	if !errors.As(err, &unfit) {
		return answer, err
	}
	result, status := cycle.profile.RunPostFilterPlugins(ctx, state, pod, unfit.Diagnosis.NodeToStatus)
	if result != nil && result.NominatingInfo != nil {
		answer.Nominated = result.NominatedNodeName
	}
	if answer.Nominated == "" {
		// DynamicResources reports before DefaultPreemption that it has nothing to free.
		_, message, found := strings.Cut(status.Message(), prefix)
		if found {
			answer.Message = prefix + message
		} else {
			answer.Status = status.Message()
		}
	}
	answer.Victims = append(answer.Victims, loaded.client.deleted...)
	slices.Sort(answer.Victims)
	return answer, nil
}
