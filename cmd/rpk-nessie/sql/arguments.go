// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

// argumentsOf evaluates a batch's mappings, each of them once a message. Mappings and queries that are the same for all
// messages are prepared once.
type argumentsOf struct {
	dialect  dialect
	batch    service.MessageBatch
	mappings map[*bloblang.Executor]*service.MessageBatchBloblangExecutor
	texts    map[*service.InterpolatedString]*service.MessageBatchInterpolationExecutor
}

func newArguments(d dialect, batch service.MessageBatch) *argumentsOf {
	return &argumentsOf{
		dialect: d, batch: batch,
		mappings: map[*bloblang.Executor]*service.MessageBatchBloblangExecutor{},
		texts:    map[*service.InterpolatedString]*service.MessageBatchInterpolationExecutor{},
	}
}

// values are the parameters of message i, ready to bind; none without a mapping.
func (a *argumentsOf) values(mapping *bloblang.Executor, i int) ([]any, error) {
	if mapping == nil {
		return nil, nil
	}
	prepared := a.mappings[mapping]
	if prepared == nil {
		prepared = a.batch.BloblangExecutor(mapping)
		a.mappings[mapping] = prepared
	}
	result, err := prepared.Query(i)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sqFieldArgsMapping, err)
	}
	values, ok := arrayOf(result)
	if !ok {
		return nil, fmt.Errorf("%s must give an array, as in root = [ this.id ]", sqFieldArgsMapping)
	}
	bound := make([]any, len(values))
	for n, value := range values {
		if bound[n], err = a.dialect.bind(value); err != nil {
			return nil, fmt.Errorf("%s: value %d: %w", sqFieldArgsMapping, n+1, err)
		}
	}
	return bound, nil
}

// text is an interpolated text for message i.
func (a *argumentsOf) text(interpolated *service.InterpolatedString, i int) (string, error) {
	prepared := a.texts[interpolated]
	if prepared == nil {
		prepared = a.batch.InterpolationExecutor(interpolated)
		a.texts[interpolated] = prepared
	}
	return prepared.TryString(i)
}

// arrayOf is the array that a mapping gave, if it gave one; result is nil where the mapping deleted the root.
func arrayOf(result *service.Message) ([]any, bool) {
	if result == nil {
		return nil, false
	}
	value, err := result.AsStructured()
	if err != nil {
		return nil, false
	}
	array, ok := value.([]any)
	return array, ok
}
