package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type podAnswer struct {
	Name    string                 `json:"name"`
	Message string                 `json:"message"`
	Nodes   map[string]*nodeAnswer `json:"nodes"`
	Best    []string               `json:"best"`
	Error   string                 `json:"error,omitempty"`
}

type nodeAnswer struct {
	Code    string           `json:"code"`
	Plugin  string           `json:"plugin,omitempty"`
	Reasons []string         `json:"reasons,omitempty"`
	Total   *int64           `json:"total,omitempty"`
	Scores  map[string]int64 `json:"scores,omitempty"`
}

func answerPods(asked *question) (any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loaded, err := newCluster(ctx, asked)
	if err != nil {
		return nil, err
	}
	if asked.Steps != nil {
		return loaded.answerSteps(ctx, asked)
	}
	if asked.Pod == nil {
		return nil, errors.New("pod: expected a Pod, got nothing")
	}
	return loaded.decide(ctx, asked.Name, asked.Pod)
}

// decide answers for every node, where kube-scheduler's own cycle forgets all but the one it chooses; what that cycle
// chooses or reports is then compared with the answer.
func (c *cluster) decide(ctx context.Context, name string, pod *v1.Pod) (*podAnswer, error) {
	cycle, err := c.newCycle(ctx, pod)
	if err != nil {
		return nil, err
	}
	answer, err := cycle.evaluate(ctx)
	answer.Name = name
	if err != nil {
		answer.Nodes, answer.Best, answer.Error = map[string]*nodeAnswer{}, []string{}, err.Error()
	}
	if pod.Status.NominatedNodeName == "" { // that node alone is looked at first
		if err := cycle.check(ctx, answer); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (c *cycle) evaluate(ctx context.Context) (*podAnswer, error) {
	answer := &podAnswer{Nodes: map[string]*nodeAnswer{}, Best: []string{}}
	nodes, err := c.snapshot.NodeInfos().List()
	if err != nil {
		return answer, err
	}
	if len(nodes) == 0 {
		return answer, scheduler.ErrNoNodesAvailable
	}
	pod, state := c.pod.Pod, framework.NewCycleState()
	found := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	narrowed, status, plugins := c.profile.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return answer, status.AsError()
		}
		found.PreFilterMsg = status.Message()
		for _, node := range nodes {
			answer.Nodes[node.Node().Name] = refusal(status)
		}
		answer.Message = fitError(pod, len(nodes), found)
		return answer, nil
	}
	var feasible []fwk.NodeInfo
	for _, node := range nodes {
		name := node.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			answer.Nodes[name] = &nodeAnswer{Code: "PreFilterExcluded"}
			continue
		}
		status := c.profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		switch {
		case status.Code() == fwk.Error:
			return answer, status.AsError()
		case status.IsSuccess():
			feasible = append(feasible, node)
			answer.Nodes[name] = &nodeAnswer{Code: status.Code().String()}
		default:
			found.NodeToStatus.Set(name, status)
			answer.Nodes[name] = refusal(status)
		}
	}
	if len(feasible) == 0 {
		if !narrowed.AllNodes() {
			found.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
				fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", slices.Sorted(maps.Keys(plugins)))))
		}
		answer.Message = fitError(pod, len(nodes), found)
		return answer, nil
	}
	return answer, c.score(ctx, state, feasible, answer)
}

func refusal(status *fwk.Status) *nodeAnswer {
	return &nodeAnswer{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: status.Reasons()}
}

func fitError(pod *v1.Pod, nodes int, found framework.Diagnosis) string {
	return (&framework.FitError{Pod: pod, NumAllNodes: nodes, Diagnosis: found}).Error()
}

func (c *cycle) score(ctx context.Context, state fwk.CycleState, feasible []fwk.NodeInfo, answer *podAnswer) error {
	if status := c.profile.RunPreScorePlugins(ctx, state, c.pod.Pod, feasible); !status.IsSuccess() {
		return fmt.Errorf("prescore: %w", status.AsError())
	}
	scored, status := c.profile.RunScorePlugins(ctx, state, c.pod.Pod, feasible)
	if !status.IsSuccess() {
		return fmt.Errorf("score: %w", status.AsError())
	}
	var highest int64
	for _, node := range scored {
		if len(answer.Best) == 0 || node.TotalScore > highest {
			highest, answer.Best = node.TotalScore, []string{}
		}
		if node.TotalScore == highest {
			answer.Best = append(answer.Best, node.Name)
		}
		given := answer.Nodes[node.Name]
		given.Total, given.Scores = &node.TotalScore, map[string]int64{}
		for _, score := range node.Scores {
			given.Scores[score.Name] = score.Score
		}
	}
	slices.Sort(answer.Best)
	return nil
}

// check is an error where the answer is not what kube-scheduler's own cycle chooses or reports.
func (c *cycle) check(ctx context.Context, answer *podAnswer) error {
	chosen, err := c.SchedulePod(ctx, c.profile, framework.NewCycleState(), c.pod)
	var unfit *framework.FitError
	switch {
	case errors.As(err, &unfit):
		if unfit.Error() != answer.Message {
			return fmt.Errorf("the cycle reports %q, the answer is %q", unfit.Error(), answer.Message)
		}
	case err != nil:
		if answer.Error == "" {
			return fmt.Errorf("the cycle fails: %w", err)
		}
	case answer.Error != "":
		// A single feasible node is not scored, so what fails in scoring is not seen.
		if chosen.FeasibleNodes != 1 {
			return fmt.Errorf("the cycle chooses %s, the answer is the error %s", chosen.SuggestedHost, answer.Error)
		}
	case !slices.Contains(answer.Best, chosen.SuggestedHost):
		return fmt.Errorf("the cycle chooses %s, the answer is %v", chosen.SuggestedHost, answer.Best)
	}
	return nil
}
