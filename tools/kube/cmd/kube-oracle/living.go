package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// step is one change of a living cluster, or a pod to decide on. A pod that fits is then placed on the first of its
// best nodes, by name, so that the next steps see it there.
type step struct {
	Apply  json.RawMessage `json:"apply"`
	Delete json.RawMessage `json:"delete"`
	Decide *v1.Pod         `json:"decide"`
}

type livingAnswer struct {
	Name    string       `json:"name"`
	Answers []*podAnswer `json:"answers"` // one for each decision
}

func (c *cluster) answerSteps(ctx context.Context, asked *question) (*livingAnswer, error) {
	answer := &livingAnswer{asked.Name, []*podAnswer{}}
	for number, step := range asked.Steps {
		if err := c.take(ctx, step, answer); err != nil {
			return nil, fmt.Errorf("steps[%d]: %w", number, err)
		}
	}
	return answer, nil
}

func (c *cluster) take(ctx context.Context, step step, answer *livingAnswer) error {
	switch {
	case step.Apply != nil:
		object, err := decoded(step.Apply)
		if err != nil {
			return err
		}
		return c.apply(object)
	case step.Delete != nil:
		object, err := decoded(step.Delete)
		if err != nil {
			return err
		}
		admit(object)
		return c.known.remove(object)
	case step.Decide != nil:
		given, err := c.decide(ctx, step.Decide.Name, step.Decide)
		if err != nil {
			return err
		}
		answer.Answers = append(answer.Answers, given)
		if len(given.Best) == 0 {
			return nil
		}
		placed := step.Decide.DeepCopy()
		placed.Spec.NodeName = given.Best[0]
		return c.apply(placed)
	}
	return errors.New("expected one of apply, delete and decide")
}
